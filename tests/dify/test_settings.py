"""The credentials form as settings."""

from dataclasses import replace
from typing import Any

import pytest

from dify.settings import read_settings
from memory.errors import ChromaAddressInvalid, SettingInvalid
from memory.quotas import CHROMA_CLOUD
from memory.settings import ChromaSettings, OpenAICompatibleSettings

URL = "http://chroma.example.com:8000"
EMBEDDING = {
    "embedding_source": "openai_compatible",
    "embedding_base_url": "http://ollama.example.com:11434/v1",
    "embedding_model": "bge-m3",
    "embedding_api_key": "hunter2",
}
FIELDS = [
    "chroma_token",
    "chroma_auth_header",
    "chroma_tenant",
    "chroma_database",
    "namespace",
    "embedding_source",
    "embedding_base_url",
    "embedding_api_key",
    "embedding_model",
    "timeout_seconds",
    "shards",
    "chroma_quotas",
]


@pytest.mark.parametrize(
    "form",
    [{}, dict.fromkeys(FIELDS, ""), dict.fromkeys(FIELDS), dict.fromkeys(FIELDS, "  ")],
    ids=["absent", "empty", "None", "blank"],
)
def test_only_the_address_is_needed(form: dict[str, Any]) -> None:
    """Every other field left alone has its default, and the built-in model is used."""
    settings = read_settings({"chroma_url": URL, **form})
    assert settings.chroma == ChromaSettings(url=URL)
    assert settings.embedding is None


def test_every_field_is_read() -> None:
    """What the administrator filled in arrives, trimmed."""
    form = {
        "chroma_url": f" {URL} ",
        "chroma_token": " token ",
        "chroma_auth_header": "X-Chroma-Token",
        "chroma_tenant": "tenant",
        "chroma_database": "database",
        "namespace": "brand-a",
        "timeout_seconds": "12.5",
        "shards": "256",
        "chroma_quotas": "chroma_cloud, records_per_write=1000",
        **EMBEDDING,
    }
    settings = read_settings(form)
    assert settings.chroma == ChromaSettings(
        url=URL,
        token="token",
        auth_header="X-Chroma-Token",
        tenant="tenant",
        database="database",
        namespace="brand-a",
        timeout_seconds=12.5,
        shards=256,
        quotas=replace(CHROMA_CLOUD, records_per_write=1_000),
    )
    assert settings.embedding == OpenAICompatibleSettings(
        base_url="http://ollama.example.com:11434/v1", model="bge-m3", api_key="hunter2", timeout_seconds=12.5
    )


@pytest.mark.parametrize("shards", ["1", 1_024])
def test_a_namespace_has_from_one_to_1024_collections(shards: object) -> None:
    """Both limits are taken."""
    assert read_settings({"chroma_url": URL, "shards": shards}).chroma.shards == int(str(shards))


@pytest.mark.parametrize("shards", ["0", "1025", "2.5", "many"])
def test_another_number_of_collections_is_refused(shards: str) -> None:
    """By the name of the field."""
    with pytest.raises(SettingInvalid) as caught:
        read_settings({"chroma_url": URL, "shards": shards})
    assert caught.value.details["name"] == "shards"


def test_chroma_cloud_is_known_by_its_address() -> None:
    """Nobody has to know its quotas."""
    assert read_settings({"chroma_url": "https://api.trychroma.com"}).chroma.quotas == CHROMA_CLOUD


@pytest.mark.parametrize("seconds", ["5", 5, 5.0, " 5 "])
def test_the_time_limit_is_text_or_a_number(seconds: object) -> None:
    """The form has no number field."""
    assert read_settings({"chroma_url": URL, "timeout_seconds": seconds}).chroma.timeout_seconds == 5.0


@pytest.mark.parametrize(("of_the_form", "expected"), [("2", 2.0), ("30", 5.0), ("", 5.0)])
def test_a_check_is_no_slower_than_the_form_says(of_the_form: str, expected: float) -> None:
    """The shorter of the two limits counts."""
    form = {"chroma_url": URL, "timeout_seconds": of_the_form}
    assert read_settings(form, timeout_seconds=5.0).chroma.timeout_seconds == expected


@pytest.mark.parametrize("url", ["", None, "chroma.example.com", "ftp://chroma.example.com"])
def test_a_malformed_address_is_the_administrators(url: object) -> None:
    """An address that is missing is one that is malformed."""
    with pytest.raises(ChromaAddressInvalid):
        read_settings({"chroma_url": url})


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"timeout_seconds": "soon"}, "timeout_seconds"),
        ({"timeout_seconds": "0"}, "timeout_seconds"),
        ({"timeout_seconds": "241"}, "timeout_seconds"),
        ({"timeout_seconds": True}, "timeout_seconds"),
        ({"embedding_source": "hunter2"}, "embedding_source"),
        ({"namespace": "hunter2 !"}, "namespace"),
        ({"namespace": ["hunter2"]}, "namespace"),
        ({"chroma_token": {"hunter2": 1}}, "chroma_token"),
        ({"chroma_url": 5}, "chroma_url"),
        ({"chroma_url": True}, "chroma_url"),
        ({**EMBEDDING, "embedding_base_url": ""}, "embedding_base_url"),
        ({**EMBEDDING, "embedding_base_url": "hunter2"}, "embedding_base_url"),
        ({**EMBEDDING, "embedding_model": ""}, "embedding_model"),
        ({**EMBEDDING, "embedding_model": ["m"]}, "embedding_model"),
    ],
    ids=repr,
)
def test_a_field_that_cannot_be_used_is_named(changed: dict[str, Any], name: str) -> None:
    """To the administrator it is a setting, never a parameter; its value is not repeated."""
    with pytest.raises((SettingInvalid, ChromaAddressInvalid)) as caught:
        read_settings({"chroma_url": URL, **changed})
    assert caught.value.details.get("name", "chroma_url") == name
    assert "hunter2" not in str(caught.value)


def test_fields_of_the_other_source_are_passed_over() -> None:
    """With the built-in model, what was left in the embedding fields does not matter."""
    form = {"chroma_url": URL, **EMBEDDING, "embedding_source": "builtin", "embedding_base_url": "nonsense"}
    assert read_settings(form).embedding is None


def test_settings_show_no_secret() -> None:
    """Neither token nor key is in what a log would print."""
    settings = read_settings({"chroma_url": URL, "chroma_token": "hunter2", **EMBEDDING})
    assert "hunter2" not in repr(settings)


def test_days_by_source_and_the_receipts_key_are_read() -> None:
    """Blanks do not matter; a source may hold an equals sign; the key is hidden."""
    form = {
        "chroma_url": URL,
        "retention_days_by_source": "zendesk=365, a=b = 30",
        "hash_key": " secret-key-16-letters ",
    }
    policy = read_settings(form).policy
    assert policy.retention_days_by_source == {"zendesk": 365.0, "a=b": 30.0}
    assert policy.hash_key == "secret-key-16-letters"
    assert "secret-key-16-letters" not in repr(policy)


@pytest.mark.parametrize(
    "days", ["zendesk", "zendesk=", "=30", "zendesk=0", "zendesk=nan", "zendesk=ten", "a=1, b"]
)
def test_days_by_source_that_cannot_be_read_are_refused(days: str) -> None:
    """The setting is named."""
    with pytest.raises(SettingInvalid) as failure:
        read_settings({"chroma_url": URL, "retention_days_by_source": days})
    assert failure.value.details["name"] == "retention_days_by_source"
