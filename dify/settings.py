"""The credentials form, and the same fields of the endpoint, as the engine's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dify.parameters import Parameters
from memory import settings as engine
from memory.errors import ParameterInvalid, SettingInvalid
from memory.extraction.extracting import DEFAULT_MIN_CONFIDENCE
from memory.policy import Policy
from memory.quotas import read_quotas
from memory.records import Kind
from memory.settings import AuditSettings, ChromaSettings, OpenAICompatibleSettings

if TYPE_CHECKING:
    from memory.redaction import RedactionType

LANGUAGE_MODEL_SECONDS = 100.0
"""A language model takes longer than a database; Dify allows 250 s for a call, and it may be asked twice."""


LEAST_DAYS, MOST_DAYS = 1.0, 36_500.0
"""Days that memories may be kept."""


class EmbeddingSource(StrEnum):
    """What the form offers; a model of the Dify workspace is chosen on the node instead."""

    BUILTIN = "builtin"
    OPENAI_COMPATIBLE = "openai_compatible"


@dataclass(frozen=True, slots=True)
class Settings:
    """What an administrator filled in.

    Attributes:
        chroma: server and namespace.
        embedding: the embedding service; None for the built-in model.
        language_model: the service of the language model that extracts facts; None for none.
        policy: what is redacted, how long memories are kept, how sure a fact has to be.
        audit: what is noted of who did what.
    """

    chroma: ChromaSettings
    embedding: OpenAICompatibleSettings | None
    language_model: OpenAICompatibleSettings | None
    policy: Policy
    audit: AuditSettings


def read_settings(form: Mapping[str, Any], *, timeout_seconds: float | None = None) -> Settings:
    """Read the form.

    Args:
        form: the fields as Dify sends them; only chroma_url has to be there.
        timeout_seconds: overrides the form's own, for a check that has to be quick.

    Raises:
        SettingInvalid, ChromaAddressInvalid: a field cannot be used.
    """
    try:
        return _read(Parameters(form), timeout_seconds)
    except ParameterInvalid as error:
        raise _as_setting(error) from None


def _read(fields: Parameters, timeout_seconds: float | None) -> Settings:
    low, high = engine.TIMEOUT_RANGE_SECONDS
    seconds = fields.number("timeout_seconds", engine.DEFAULT_TIMEOUT_SECONDS, low=low, high=high)
    if timeout_seconds is not None:
        seconds = min(seconds, timeout_seconds)
    url = fields.text("chroma_url")
    fewest, most = engine.SHARDS_RANGE
    chroma = ChromaSettings(
        url=url,
        token=fields.text("chroma_token"),
        auth_header=fields.text("chroma_auth_header", engine.DEFAULT_AUTH_HEADER),
        tenant=fields.text("chroma_tenant", engine.DEFAULT_TENANT),
        database=fields.text("chroma_database", engine.DEFAULT_DATABASE),
        namespace=fields.text("namespace", engine.DEFAULT_NAMESPACE),
        timeout_seconds=seconds,
        shards=fields.whole_number("shards", engine.DEFAULT_SHARDS, low=fewest, high=most),
        quotas=read_quotas(fields.texts("chroma_quotas"), url),
    )
    return Settings(
        chroma, _embedding(fields, seconds), _language_model(fields), _policy(fields), _audit(fields)
    )


def _embedding(fields: Parameters, seconds: float) -> OpenAICompatibleSettings | None:
    source = fields.choice("embedding_source", EmbeddingSource, EmbeddingSource.BUILTIN)
    if source is not EmbeddingSource.OPENAI_COMPATIBLE:
        return None
    return OpenAICompatibleSettings(
        base_url=fields.text("embedding_base_url"),
        model=_service_model(fields),
        api_key=fields.text("embedding_api_key"),
        timeout_seconds=seconds,
    )


def _language_model(fields: Parameters) -> OpenAICompatibleSettings | None:
    if not fields.text("llm_base_url"):
        return None
    return OpenAICompatibleSettings(
        base_url=fields.text("llm_base_url"),
        model=fields.text("llm_model"),
        api_key=fields.text("llm_api_key"),
        timeout_seconds=LANGUAGE_MODEL_SECONDS,
        purpose="llm",
    )


def _policy(fields: Parameters) -> Policy:
    return Policy(
        redact=_redaction_types(fields),
        retention_days={
            kind: fields.number(f"retention_days_{kind}", 1.0, low=LEAST_DAYS, high=MOST_DAYS)
            for kind in Kind
            if fields.raw(f"retention_days_{kind}") is not None
        },
        min_confidence=fields.number("min_confidence", DEFAULT_MIN_CONFIDENCE, low=0.0, high=1.0),
        retention_days_by_source=_days_by_source(fields),
        hash_key=fields.text("hash_key"),
    )


def _audit(fields: Parameters) -> AuditSettings:
    low, high = engine.AUDIT_DAYS_RANGE
    return AuditSettings(
        days=fields.whole_number("audit_days", engine.DEFAULT_AUDIT_DAYS, low=low, high=high),
        includes_reads=fields.boolean("audit_reads"),
        hash_key=fields.text("hash_key"),
    )


def _days_by_source(fields: Parameters) -> dict[str, float]:
    """The setting `retention_days_by_source`: "zendesk=365, shop=30"."""
    days: dict[str, float] = {}
    for each in fields.texts("retention_days_by_source"):
        source, _, number = (part.strip() for part in each.rpartition("="))
        try:
            days[source] = float(number)
        except ValueError:
            days[source] = 0.0
        if not source or not LEAST_DAYS <= days[source] <= MOST_DAYS:
            raise ParameterInvalid(
                name="retention_days_by_source", expected="sources with days, such as zendesk=365, shop=30"
            )
    return days


def _redaction_types(fields: Parameters) -> frozenset[RedactionType] | None:
    """The setting `redact`: names with commas between; "default" for the usual ones, "none" for none."""
    words = [word.casefold() for word in fields.texts("redact")]
    if words in ([], ["default"]):
        return None
    from memory.redaction import DEFAULT_TYPES, RedactionType

    types: set[RedactionType] = set()
    for word in words:
        if word == "default":
            types |= DEFAULT_TYPES
        elif word in set(RedactionType):
            types.add(RedactionType(word))
        elif word != "none":
            raise ParameterInvalid(name="redact", expected="default, none, or " + ", ".join(RedactionType))
    return frozenset(types)


def _service_model(fields: Parameters) -> str:
    if isinstance(fields.raw("embedding_model"), dict):
        return fields.text("embedding_model_name")
    return fields.text("embedding_model_name") or fields.text("embedding_model")


def selected_model(form: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """The workspace's model that one of the endpoint's own selectors holds; None for nothing.

    The form of the endpoint has a selector under a name that is a text field in the credentials.
    """
    return Parameters(form).model(name) if isinstance(form.get(name), dict) else None


def _as_setting(error: ParameterInvalid) -> SettingInvalid:
    """The same complaint, addressed to whoever fills in the form."""
    return SettingInvalid(**error.details)
