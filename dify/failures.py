"""The one table of failures: which HTTP status each has. Nodes raise the same failures as they are."""

from collections.abc import Mapping

from dify import web_errors
from memory import errors
from memory.errors import MemoryFault

HTTP_STATUS: Mapping[type[MemoryFault], int] = {
    errors.CustomerMissing: 400,
    errors.IdInvalid: 400,
    errors.ConversationMismatch: 409,
    errors.ParameterMissing: 400,
    errors.ParameterInvalid: 400,
    errors.ContentInvalid: 422,
    errors.ContentTooLarge: 413,
    errors.MetadataInvalid: 422,
    errors.MemoryIdsRequired: 400,
    errors.TextRefused: 422,
    errors.Forbidden: 403,
    errors.NamespaceNotEmpty: 409,
    errors.BackupDamaged: 422,
    errors.BackupOutOfOrder: 409,
    errors.CustomersSame: 400,
    errors.MergeConflict: 409,
    errors.MoveConflict: 409,
    errors.SettingInvalid: 500,
    errors.ChromaAddressInvalid: 500,
    errors.ChromaNotFound: 502,
    errors.ChromaTooOld: 502,
    errors.ChromaRefused: 502,
    errors.ChromaTenantMissing: 502,
    errors.ChromaDatabaseMissing: 502,
    errors.ChromaQuotaExceeded: 502,
    errors.EmbedderMismatch: 409,
    errors.EmbedderDimensionMismatch: 409,
    errors.EmbedderUnavailable: 500,
    errors.EmbedderRefused: 502,
    errors.ChromaUnreachable: 503,
    errors.ChromaTimeout: 504,
    errors.ChromaBusy: 503,
    errors.ChromaFailed: 502,
    errors.EmbedderUnreachable: 503,
    errors.EmbedderTimeout: 504,
    errors.EmbedderRateLimited: 429,
    errors.EmbedderFailed: 502,
    errors.LanguageModelMissing: 400,
    errors.LanguageModelRefused: 502,
    errors.LanguageModelUnreachable: 503,
    errors.LanguageModelTimeout: 504,
    errors.LanguageModelRateLimited: 429,
    errors.LanguageModelFailed: 502,
    errors.ExtractionFailed: 502,
    errors.ForgetUnverified: 503,
    errors.ErasureUnderWay: 503,
    errors.NamespaceMoving: 503,
    errors.MoveUnverified: 503,
    errors.InternalError: 500,
    web_errors.Unauthorized: 401,
    web_errors.ApiKeysInvalid: 500,
    web_errors.SignatureInvalid: 403,
    web_errors.NotFound: 404,
    web_errors.MethodNotAllowed: 405,
    web_errors.BodyTooLarge: 413,
    web_errors.BodyInvalid: 400,
    web_errors.MediaTypeUnsupported: 415,
    web_errors.ExportInvalid: 422,
}
"""Every failure with its HTTP status; a test holds that none is missing."""

RETRY_AFTER_SECONDS = 5
"""What Retry-After says on 429 and 503: about as long as a busy server or a model's limit takes."""


def status_of(fault: MemoryFault) -> int:
    """The HTTP status of a failure."""
    return HTTP_STATUS[type(fault)]


def headers_of(fault: MemoryFault) -> dict[str, str]:
    """The headers a failure's answer has beside its body."""
    if isinstance(fault, web_errors.Unauthorized):
        return {"WWW-Authenticate": 'Bearer realm="customer memory"'}
    if isinstance(fault, web_errors.MethodNotAllowed):
        return {"Allow": str(fault.details["allowed"])}
    if status_of(fault) in {429, 503}:
        return {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return {}


def body_of(fault: MemoryFault) -> dict[str, object]:
    """A failure as JSON: `{"error": {"code", "message", "retryable"}}`."""
    return {"error": {"code": fault.code, "message": fault.message, "retryable": fault.retryable}}
