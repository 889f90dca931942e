"""Settings are checked when built, and show no secret."""

from collections.abc import Callable

import pytest

from memory.errors import ChromaAddressInvalid, SettingInvalid
from memory.settings import ChromaSettings, OpenAICompatibleSettings

GOOD = [
    "http://chroma.example.com:8000",
    "https://chroma.example.com",
    "http://localhost:8000",
    "http://127.0.0.1:8000",
    "http://[::1]:8000",
    "http://chroma:8000/",
    "https://example.com/chroma",
    "https://example.com/chroma/",
    "HTTP://chroma.example.com:8000",
    "https://api.trychroma.com:443",
    "http://host_with_underscore:8000",
    "http://chroma:65535",
]
MALFORMED = [
    "",
    "chroma.example.com",
    "chroma.example.com:8000",
    "localhost:8000",
    "ftp://chroma.example.com",
    "file:///etc/passwd",
    "http:/chroma.example.com",
    "http://",
    "http://:8000",
    "https:///path",
    "http://chroma example.com:8000",
    " http://chroma.example.com",
    "http://chroma.example.com:8000 ",
    "http://chroma.example.com:8000\n",
    "http://chroma.example.com\x00:8000",
    "http://chroma.example.com:port",
    "http://chroma.example.com:0",
    "http://chroma.example.com:65536",
    "http://chroma.example.com:-1",
    "http://user:hunter2@chroma.example.com",
    "http://hunter2@chroma.example.com",
    "http://chroma.example.com?token=hunter2",
    "http://chroma.example.com/#hunter2",
    "http://[::1:8000",
    "http://[nonsense]:8000",
    "javascript:alert(1)",
]


@pytest.mark.parametrize("url", GOOD)
def test_an_address_is_taken(url: str) -> None:
    """An address is http or https, with or without port and path."""
    assert ChromaSettings(url=url).base_url.casefold() == url.casefold().rstrip("/")


@pytest.mark.parametrize("url", MALFORMED, ids=ascii)
def test_a_malformed_address_is_refused(url: str) -> None:
    """The error says what an address looks like, and repeats nothing of this one."""
    with pytest.raises(ChromaAddressInvalid) as caught:
        ChromaSettings(url=url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://ollama.example.com:11434/v1", "https://api.openai.com/v1", "http://[::1]/v1"]
)
def test_an_embedding_address_is_taken(url: str) -> None:
    """An address is http or https, up to the version."""
    assert OpenAICompatibleSettings(base_url=url, model="m").base_url == url


@pytest.mark.parametrize("url", MALFORMED, ids=ascii)
def test_a_malformed_embedding_address_is_refused(url: str) -> None:
    """The same addresses that are no Chroma server are no embedding service."""
    with pytest.raises(SettingInvalid) as caught:
        OpenAICompatibleSettings(base_url=url, model="m")
    assert caught.value.details["name"] == "embedding_base_url"
    assert "hunter2" not in str(caught.value)


URL = "http://chroma.example.com"


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: ChromaSettings(url=URL, auth_header="X Token"), "chroma_auth_header"),
        (lambda: ChromaSettings(url=URL, auth_header=""), "chroma_auth_header"),
        (lambda: ChromaSettings(url=URL, auth_header="X-Token:"), "chroma_auth_header"),
        (lambda: ChromaSettings(url=URL, auth_header="X-Token\n"), "chroma_auth_header"),
        (lambda: ChromaSettings(url=URL, auth_header="X-Tökén"), "chroma_auth_header"),
        (lambda: ChromaSettings(url=URL, token="hunter2\r\nX-Evil: 1"), "chroma_token"),
        (lambda: ChromaSettings(url=URL, token="hunter2é"), "chroma_token"),
        (lambda: ChromaSettings(url=URL, tenant=""), "chroma_tenant"),
        (lambda: ChromaSettings(url=URL, tenant=" "), "chroma_tenant"),
        (lambda: ChromaSettings(url=URL, tenant="a/b"), "chroma_tenant"),
        (lambda: ChromaSettings(url=URL, tenant="a\n"), "chroma_tenant"),
        (lambda: ChromaSettings(url=URL, tenant=".."), "chroma_tenant"),
        (lambda: ChromaSettings(url=URL, database="../other"), "chroma_database"),
        (lambda: ChromaSettings(url=URL, database=".."), "chroma_database"),
        (lambda: ChromaSettings(url=URL, namespace=""), "namespace"),
        (lambda: ChromaSettings(url=URL, namespace="-a"), "namespace"),
        (lambda: ChromaSettings(url=URL, namespace=".a"), "namespace"),
        (lambda: ChromaSettings(url=URL, namespace="a b"), "namespace"),
        (lambda: ChromaSettings(url=URL, namespace="a..b"), "namespace"),
        (lambda: ChromaSettings(url=URL, namespace="a/b"), "namespace"),
        (lambda: ChromaSettings(url=URL, namespace="客户"), "namespace"),
        (lambda: ChromaSettings(url=URL, namespace="a" * 64), "namespace"),
        (lambda: ChromaSettings(url=URL, namespace="a\n"), "namespace"),
        (lambda: ChromaSettings(url=URL, timeout_seconds=0.9), "timeout_seconds"),
        (lambda: ChromaSettings(url=URL, timeout_seconds=240.1), "timeout_seconds"),
        (lambda: ChromaSettings(url=URL, timeout_seconds=float("nan")), "timeout_seconds"),
        (lambda: ChromaSettings(url=URL, timeout_seconds=float("inf")), "timeout_seconds"),
        (lambda: ChromaSettings(url=URL, shards=0), "shards"),
        (lambda: ChromaSettings(url=URL, shards=1_025), "shards"),
        (lambda: OpenAICompatibleSettings(base_url=URL, model=""), "embedding_model"),
        (lambda: OpenAICompatibleSettings(base_url=URL, model="  "), "embedding_model"),
        (lambda: OpenAICompatibleSettings(base_url=URL, model="m", api_key="hunter2\n"), "embedding_api_key"),
        (lambda: OpenAICompatibleSettings(base_url=URL, model="m", api_key="hunter2é"), "embedding_api_key"),
    ],
)
def test_an_unusable_value_is_refused_by_its_name(build: Callable[[], object], name: str) -> None:
    """The administrator learns which field is wrong; the value itself is not repeated."""
    with pytest.raises(SettingInvalid) as caught:
        build()
    assert caught.value.details["name"] == name
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("namespace", ["a", "A-b_c.9", "0", "a" * 63, "a.b", "a-", "a."])
def test_a_namespace_is_a_plain_name(namespace: str) -> None:
    """Letters, digits, dots, hyphens and underscores, from one to 63 of them."""
    assert ChromaSettings(url=URL, namespace=namespace).namespace == namespace


@pytest.mark.parametrize("seconds", [1.0, 30.0, 240.0])
def test_the_ends_of_a_range_are_within(seconds: float) -> None:
    """One second and 240 seconds are both allowed."""
    assert ChromaSettings(url=URL, timeout_seconds=seconds).timeout_seconds == seconds


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Authorization", {"Authorization": "Bearer hunter2"}),
        ("authorization", {"authorization": "Bearer hunter2"}),
        ("X-Chroma-Token", {"X-Chroma-Token": "hunter2"}),
    ],
)
def test_a_token_is_sent_as_its_header_wants(header: str, expected: dict[str, str]) -> None:
    """Under Authorization it is a Bearer token, under another name it is sent as it is."""
    assert ChromaSettings(url=URL, token="hunter2", auth_header=header).headers == expected


def test_without_a_token_nothing_is_sent() -> None:
    """No empty header reaches the server."""
    assert ChromaSettings(url=URL).headers == {}


def test_no_secret_is_shown() -> None:
    """What a log or a traceback prints of settings holds neither token nor key."""
    chroma = ChromaSettings(url=URL, token="hunter2")
    embedding = OpenAICompatibleSettings(base_url=URL, model="m", api_key="hunter2")
    for settings in (chroma, embedding):
        assert "hunter2" not in repr(settings)
        assert "hunter2" not in str(settings)


def test_settings_cannot_be_changed() -> None:
    """What was checked stays what it was."""
    settings = ChromaSettings(url=URL)
    with pytest.raises(AttributeError):
        settings.url = "http://elsewhere.example.com"  # type: ignore[misc]
