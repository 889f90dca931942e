"""Every failure the engine can report, cut by who has to act.

    MemoryFault
    ├── RequestError        the caller: the input of this call is wrong
    │   ├── CustomerMissing            ├── IdInvalid
    │   ├── ConversationMismatch       ├── ParameterMissing
    │   ├── ParameterInvalid           ├── ContentInvalid
    │   ├── ContentTooLarge            ├── MetadataInvalid
    │   ├── MemoryIdsRequired          └── TextRefused
    ├── SetupError          the administrator: a setting or a server is wrong
    │   ├── SettingInvalid             ├── ChromaAddressInvalid
    │   ├── ChromaNotFound             ├── ChromaTooOld
    │   ├── ChromaRefused              ├── ChromaTenantMissing
    │   ├── ChromaDatabaseMissing      ├── ChromaQuotaExceeded
    │   ├── EmbedderMismatch           ├── EmbedderDimensionMismatch
    │   ├── EmbedderUnavailable        ├── EmbedderRefused
    │   ├── LanguageModelMissing       └── LanguageModelRefused
    └── ServiceError        nobody: wait and try again
        ├── ChromaUnreachable          ├── ChromaTimeout
        ├── ChromaBusy                 ├── ChromaFailed
        ├── EmbedderUnreachable        ├── EmbedderTimeout
        ├── EmbedderRateLimited        ├── EmbedderFailed
        ├── LanguageModelUnreachable   ├── LanguageModelTimeout
        ├── LanguageModelRateLimited   ├── LanguageModelFailed
        ├── ExtractionFailed           ├── ForgetUnverified
        └── InternalError

A message never holds what a customer wrote, a secret, or another library's exception text; the only
values filled in are names of settings and models and numbers. None of these is a ValueError: the plugin
SDK turns a ValueError of an endpoint into a 404 that shows its text.
"""

from typing import ClassVar


class MemoryFault(Exception):
    """A failure with a stable `code`, a safe `message` and whether trying again may help.

    Args:
        details: values for the placeholders of the class's `template`; names and numbers only.
    """

    code: ClassVar[str]
    template: ClassVar[str]
    retryable: ClassVar[bool] = False

    def __init__(self, **details: str | int | float) -> None:
        self.details = details
        self.message = self.template.format(**details)
        super().__init__(self.message)

    def __str__(self) -> str:
        """The message and the code, as Dify shows them when a node fails."""
        again = " Trying again later may help." if self.retryable else ""
        return f"{self.message}{again} [{self.code}]"


class RequestError(MemoryFault):
    """The caller has to change the input of this call."""


class SetupError(MemoryFault):
    """The administrator has to change a setting or a server."""


class ServiceError(MemoryFault):
    """A service did not do its part; the same call may succeed later."""

    retryable = True


# --- the caller ---------------------------------------------------------------------------------


class CustomerMissing(RequestError):
    """Neither a customer nor a conversation is known, so there is no memory to open."""

    code = "customer_missing"
    template = (
        "No customer is known. Bind customer_id to a variable, or conversation_id to sys.conversation_id."
    )


class IdInvalid(RequestError):
    """An id is blank, a wildcard, an unfilled variable, too long, or no text at all."""

    code = "id_invalid"
    template = "{name} is not usable: {reason}."


class ConversationMismatch(RequestError):
    """The conversation is linked to a customer other than the one given."""

    code = "conversation_of_another_customer"
    template = (
        "This conversation is linked to another customer, so nothing was read or written. If it "
        "really changed hands, use link_conversation with relink switched on."
    )


class ParameterMissing(RequestError):
    """A value this call cannot do without is absent."""

    code = "parameter_missing"
    template = "{name} is needed for this."


class ParameterInvalid(RequestError):
    """A value has the wrong type or lies outside its range."""

    code = "parameter_invalid"
    template = "{name} must be {expected}."


class ContentInvalid(RequestError):
    """The content is neither text nor a list of messages."""

    code = "content_invalid"
    template = "content must be text, or a list of messages with role and content ({reason})."


class ContentTooLarge(RequestError):
    """The content of one call is over the limit."""

    code = "content_too_large"
    template = "content holds more than {limit} characters; send it in several calls."


class MetadataInvalid(RequestError):
    """The user's own metadata is not a small flat object, or names an identity."""

    code = "metadata_invalid"
    template = "metadata is not usable: {reason}."


class MemoryIdsRequired(RequestError):
    """A deletion by query was asked for without the ids a preview returned."""

    code = "memory_ids_required"
    template = (
        "Deleting needs memory_ids. Run a preview with the query first and pass the ids it "
        "returns, so that nothing else is deleted."
    )


class TextRefused(RequestError):
    """The embedding model refused this text (too long, or filtered)."""

    code = "text_refused_by_model"
    template = "The embedding model {model} refused the text."


# --- the administrator --------------------------------------------------------------------------


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


# --- nobody: wait and try again -----------------------------------------------------------------


class ChromaUnreachable(ServiceError):
    """No connection to the Chroma server could be made or kept."""

    code = "chroma_unreachable"
    template = "The Chroma server cannot be reached. Check that it runs and that the address is right."


class ChromaTimeout(ServiceError):
    """The Chroma server did not answer within the time allowed."""

    code = "chroma_timeout"
    template = "The Chroma server did not answer in time."


class ChromaBusy(ServiceError):
    """The Chroma server, or the queue in front of it, has no place left."""

    code = "chroma_busy"
    template = "The Chroma server has too much to do right now."


class ChromaFailed(ServiceError):
    """The Chroma server answered with an error of its own."""

    code = "chroma_failed"
    template = "The Chroma server failed to answer this call."


class EmbedderUnreachable(ServiceError):
    """No connection to the embedding service."""

    code = "embedder_unreachable"
    template = "The embedding service of {model} cannot be reached."


class EmbedderTimeout(ServiceError):
    """The embedding service did not answer in time."""

    code = "embedder_timeout"
    template = "The embedding model {model} did not answer in time."


class EmbedderRateLimited(ServiceError):
    """The embedding service asks for fewer calls."""

    code = "embedder_rate_limited"
    template = "The embedding service of {model} asks to slow down."


class EmbedderFailed(ServiceError):
    """The embedding service failed, or answered something that is no list of vectors."""

    code = "embedder_failed"
    template = "The embedding model {model} failed to answer."


class LanguageModelUnreachable(ServiceError):
    """No connection to the language model's service."""

    code = "language_model_unreachable"
    template = "The service of the language model {model} cannot be reached."


class LanguageModelTimeout(ServiceError):
    """The language model did not answer in time."""

    code = "language_model_timeout"
    template = "The language model {model} did not answer in time."


class LanguageModelRateLimited(ServiceError):
    """The language model's service asks for fewer calls."""

    code = "language_model_rate_limited"
    template = "The service of the language model {model} asks to slow down."


class LanguageModelFailed(ServiceError):
    """The language model failed, answered nothing, or its answer was held back by a filter."""

    code = "language_model_failed"
    template = "The language model {model} failed to answer. Nothing was stored."


class ExtractionFailed(ServiceError):
    """The language model's answer could not be read, twice."""

    code = "extraction_failed"
    template = "The language model's answer could not be read, so nothing was stored."


class ForgetUnverified(ServiceError):
    """After deleting, some of the memories could still be read."""

    code = "forget_unverified"
    template = "Of the memories to forget, {remaining} could still be read afterwards. Run it again."


class InternalError(ServiceError):
    """A fault of this plugin."""

    code = "internal_error"
    template = "Something went wrong inside the memory plugin."
    retryable = False
