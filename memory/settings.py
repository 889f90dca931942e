"""What an administrator sets, as frozen values checked when built."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from memory.errors import ChromaAddressInvalid, SettingInvalid
from memory.quotas import NO_QUOTAS, Quotas

DEFAULT_AUTH_HEADER = "Authorization"
DEFAULT_TENANT = "default_tenant"
DEFAULT_DATABASE = "default_database"
DEFAULT_NAMESPACE = "default"
DEFAULT_TIMEOUT_SECONDS = 30.0
"""Generous, since the first write after a restart may stall for seconds while the server replays its log."""
TIMEOUT_RANGE_SECONDS = (1.0, 240.0)
"""The upper end stays below Dify's 250 s for a call."""
DEFAULT_SHARDS = 64
SHARDS_RANGE = (1, 1024)
DEFAULT_AUDIT_DAYS = 90
AUDIT_DAYS_RANGE = (1, 3_650)
MIN_HASH_KEY_LENGTH = 16

# Chroma collection names allow these characters; a suffix without "-" is appended to the namespace.
_NAMESPACE = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class ChromaSettings:
    """Where the Chroma server is and which part of it is ours.

    Args:
        url: http or https address, with a port where it is not the scheme's own; a path is kept
            (a reverse proxy may serve Chroma below one).
        token: secret sent in `auth_header`; "" sends none.
        auth_header: name of the header; under "Authorization" the token is sent as Bearer.
        tenant, database: names that exist on the server.
        namespace: one independent memory space, 1 to 63 of letters, digits, ".", "_" and "-".
        timeout_seconds: time for one whole call, 1 to 240.
        shards: collections a new namespace spreads its customers over, 1 to 1024.
        quotas: how much the service takes at once.

    Raises:
        ChromaAddressInvalid, SettingInvalid: a value cannot be used.
    """

    url: str
    token: str = field(default="", repr=False)
    auth_header: str = DEFAULT_AUTH_HEADER
    tenant: str = DEFAULT_TENANT
    database: str = DEFAULT_DATABASE
    namespace: str = DEFAULT_NAMESPACE
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    shards: int = DEFAULT_SHARDS
    quotas: Quotas = NO_QUOTAS

    def __post_init__(self) -> None:
        _check_url(self.url)
        if not _HEADER_NAME.fullmatch(self.auth_header):
            raise SettingInvalid(name="chroma_auth_header", expected="the name of an HTTP header")
        if not self.token.isascii() or not self.token.isprintable():
            raise SettingInvalid(name="chroma_token", expected="printable ASCII characters")
        for name, value in (("chroma_tenant", self.tenant), ("chroma_database", self.database)):
            if not value.isprintable() or not value.strip(". ") or "/" in value:
                raise SettingInvalid(name=name, expected="a name without slashes")
        if not _NAMESPACE.fullmatch(self.namespace):
            raise SettingInvalid(
                name="namespace",
                expected="up to 63 letters, digits, dots, hyphens or underscores",
            )
        low, high = TIMEOUT_RANGE_SECONDS
        if not low <= self.timeout_seconds <= high:
            raise SettingInvalid(name="timeout_seconds", expected=f"a number from {low:g} to {high:g}")
        fewest, most = SHARDS_RANGE
        if not fewest <= self.shards <= most:
            raise SettingInvalid(name="shards", expected=f"a number from {fewest} to {most}")

    @property
    def base_url(self) -> str:
        """The address without a trailing slash."""
        scheme, _, rest = self.url.rstrip("/").partition("://")
        return f"{scheme.lower()}://{rest}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers that carry the token; empty without one."""
        if not self.token:
            return {}
        bearer = self.auth_header.casefold() == DEFAULT_AUTH_HEADER.casefold()
        return {self.auth_header: f"Bearer {self.token}" if bearer else self.token}


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ChromaAddressInvalid(reason="host or port cannot be read") from None
    if parts.scheme not in {"http", "https"}:
        raise ChromaAddressInvalid(reason="it has to start with http:// or https://")
    if not parts.hostname or any(c.isspace() or not c.isprintable() for c in url):
        raise ChromaAddressInvalid(reason="the host is missing or holds blanks")
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        raise ChromaAddressInvalid(reason="the host is no name") from None
    if parts.username is not None or parts.password is not None:
        raise ChromaAddressInvalid(reason="put the token into its own field")
    if parts.query or parts.fragment:
        raise ChromaAddressInvalid(reason="nothing may follow a ? or #")
    if port is not None and not 0 < port <= _MAX_PORT:
        raise ChromaAddressInvalid(reason="the port is out of range")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAICompatibleSettings:
    """A service that speaks OpenAI's protocol (OpenAI, Ollama, vLLM, Xinference, …).

    Args:
        base_url: http or https address up to and including the version, such as
            "http://ollama.example.com:11434/v1".
        model: name the service knows the model by.
        api_key: secret; "" where the service needs none.
        timeout_seconds: for one request.

    Raises:
        SettingInvalid: a value cannot be used.
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    purpose: str = "embedding"

    def __post_init__(self) -> None:
        try:
            _check_url(self.base_url)
        except ChromaAddressInvalid:
            raise SettingInvalid(
                name=f"{self.purpose}_base_url",
                expected="an http or https address, up to its version",
            ) from None
        if not self.model.strip():
            raise SettingInvalid(name=f"{self.purpose}_model", expected="the name of a model")
        if not self.api_key.isascii() or not self.api_key.isprintable():
            raise SettingInvalid(name=f"{self.purpose}_api_key", expected="printable ASCII characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """What is noted of who did what.

    Args:
        days: how long an entry is kept, 1 to 3,650.
        includes_reads: whether reads are noted too, which costs each of them a write.
        hash_key: secret under which ids are hashed, at least 16 characters; "" leaves ids out.

    Raises:
        SettingInvalid: a value cannot be used.
    """

    days: int = DEFAULT_AUDIT_DAYS
    includes_reads: bool = False
    hash_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        low, high = AUDIT_DAYS_RANGE
        if not low <= self.days <= high:
            raise SettingInvalid(name="audit_days", expected=f"a whole number from {low} to {high}")
        if 0 < len(self.hash_key) < MIN_HASH_KEY_LENGTH:
            raise SettingInvalid(name="hash_key", expected=f"at least {MIN_HASH_KEY_LENGTH} characters")
