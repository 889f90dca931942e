"""Failures for the administrator: a setting or a server is wrong."""

from memory.errors.base import SetupError


class SettingInvalid(SetupError):
    """A setting of the credentials form has a value that cannot be used."""

    code = "setting_invalid"
    template = "The setting {name} must be {expected}."


class ChromaAddressInvalid(SetupError):
    """The address of the Chroma server is not an http or https URL."""

    code = "chroma_address_invalid"
    template = "The Chroma address must look like http://chroma.example.com:8000 ({reason})."


class ChromaNotFound(SetupError):
    """Something answers at the address, but it is not a Chroma server."""

    code = "chroma_not_found"
    template = "Something answers at the Chroma address, but it is not a Chroma server. Check host and port."


class ChromaTooOld(SetupError):
    """The Chroma server is older than 1.0."""

    code = "chroma_too_old"
    template = "The Chroma server is too old: 1.0 or newer is needed."


class ChromaRefused(SetupError):
    """The proxy in front of Chroma, or Chroma Cloud, refused the token."""

    code = "chroma_refused"
    template = (
        "The Chroma server, or the proxy in front of it, refused access. Check chroma_token and "
        "chroma_auth_header."
    )


class ChromaTenantMissing(SetupError):
    """The configured tenant does not exist on the server."""

    code = "chroma_tenant_missing"
    template = "The Chroma server has no tenant of the configured name. Check chroma_tenant."


class ChromaDatabaseMissing(SetupError):
    """The configured database does not exist in the tenant."""

    code = "chroma_database_missing"
    template = "The Chroma server has no database of the configured name. Check chroma_database."


class ChromaQuotaExceeded(SetupError):
    """A quota of the Chroma service was exceeded."""

    code = "chroma_quota_exceeded"
    template = "A quota of the Chroma service is used up."


class EmbedderMismatch(SetupError):
    """Another embedding model than the one this namespace was started with."""

    code = "embedder_mismatch"
    template = (
        "This namespace was started with the embedding model {stored}; {offered} cannot be mixed "
        "with it. Choose {stored} again, or use another namespace."
    )


class EmbedderDimensionMismatch(SetupError):
    """A model of the remembered name answers with vectors of another length."""

    code = "embedder_dimension_mismatch"
    template = (
        "The embedding model {offered} answers with {offered_dimension} dimensions; this namespace "
        "was started with {stored} and {stored_dimension} dimensions."
    )


class EmbedderUnavailable(SetupError):
    """The model is one of the Dify workspace, and this call cannot reach the workspace."""

    code = "embedder_unavailable"
    template = "The embedding model {model} cannot be used from here."


class EmbedderRefused(SetupError):
    """The embedding service refused the key or does not know the model."""

    code = "embedder_refused"
    template = "The embedding service refused the key or does not have the model {model}."


class LanguageModelMissing(SetupError):
    """Facts are to be extracted, and no language model is chosen."""

    code = "language_model_missing"
    template = "Extracting facts needs a language model. Choose one on the node or in the settings."


class LanguageModelRefused(SetupError):
    """The language model's service refused the key or does not know the model."""

    code = "language_model_refused"
    template = "The service refused the key or does not have the language model {model}."
