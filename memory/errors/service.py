"""Failures that are nobody's: wait and try again."""

from memory.errors.base import ServiceError


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


class ErasureUnderWay(ServiceError):
    """The customer is being erased, or was while this call worked."""

    code = "erasure_under_way"
    template = (
        "This customer was being erased meanwhile, so nothing of this call was kept. Send it again if it is "
        "still wanted."
    )


class NamespaceMoving(ServiceError):
    """The memories are being moved to another layout, or were while this call worked."""

    code = "namespace_moving"
    template = (
        "The memory is being moved or mended at the moment, so this call may not have been kept. "
        "Send it again."
    )


class MoveUnverified(ServiceError):
    """What was copied to another layout differs from what is there."""

    code = "move_unverified"
    template = "Of the rows to move, {rows} differ from their copies. Nothing was switched; run it again."


class InternalError(ServiceError):
    """A fault of this plugin."""

    code = "internal_error"
    template = "Something went wrong inside the memory plugin."
    retryable = False
