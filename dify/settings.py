"""The credentials form, and the same fields of the endpoint, as the engine's settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dify.parameters import Parameters
from memory import settings as engine
from memory.errors import ParameterInvalid, SettingInvalid
from memory.settings import ChromaSettings, OpenAICompatibleSettings


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

    """

    chroma: ChromaSettings
    embedding: OpenAICompatibleSettings | None


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
    chroma = ChromaSettings(
        url=fields.text("chroma_url"),
        token=fields.text("chroma_token"),
        auth_header=fields.text("chroma_auth_header", engine.DEFAULT_AUTH_HEADER),
        tenant=fields.text("chroma_tenant", engine.DEFAULT_TENANT),
        database=fields.text("chroma_database", engine.DEFAULT_DATABASE),
        namespace=fields.text("namespace", engine.DEFAULT_NAMESPACE),
        timeout_seconds=seconds,
    )
    source = fields.choice("embedding_source", EmbeddingSource, EmbeddingSource.BUILTIN)
    if source is not EmbeddingSource.OPENAI_COMPATIBLE:
        return Settings(chroma, None)
    return Settings(
        chroma,
        OpenAICompatibleSettings(
            base_url=fields.text("embedding_base_url"),
            model=_service_model(fields),
            api_key=fields.text("embedding_api_key"),
            timeout_seconds=seconds,
        ),
    )


def _service_model(fields: Parameters) -> str:
    if isinstance(fields.raw("embedding_model"), dict):
        return fields.text("embedding_model_name")
    return fields.text("embedding_model_name") or fields.text("embedding_model")


def selected_model(form: Mapping[str, Any]) -> dict[str, Any] | None:
    """The workspace's model that the endpoint's own selector holds; None for nothing.

    The form of the endpoint has a selector under the name that is a text field in the credentials.
    """
    value = form.get("embedding_model")
    return Parameters(form).model("embedding_model") if isinstance(value, dict) else None


def _as_setting(error: ParameterInvalid) -> SettingInvalid:
    """The same complaint, addressed to whoever fills in the form."""
    return SettingInvalid(**error.details)
