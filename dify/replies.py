"""From a node's answer, or failure, to the messages the plugin SDK sends; the one table of failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dify.nodes import NODES
from dify.opening import open_engine
from dify.parameters import Parameters
from memory import errors
from memory.errors import InternalError, MemoryFault

if TYPE_CHECKING:
    from dify_plugin import Tool
    from dify_plugin.entities.tool import ToolInvokeMessage

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
    errors.ForgetUnverified: 503,
    errors.InternalError: 500,
}
"""Every failure with its HTTP status; a test holds that none is missing."""


def reply(tool: Tool, name: str, parameters: Mapping[str, Any]) -> Iterator[ToolInvokeMessage]:
    """Run a node and send its answer: a sentence, the JSON, and each declared variable.

    A failure is raised, so that Dify marks the node as failed and its error branch sees message and code.

    Args:
        tool: the tool instance, with credentials and session.
        name: which node of `dify.nodes.NODES`.
        parameters: the node's inputs and settings as Dify sends them.

    Raises:
        RequestError, SetupError, ServiceError: see `memory.errors`.

    """
    node = NODES[name]
    try:
        read = Parameters(parameters)
        selected = read.model("embedding_model") if node.selects_model else None
        engine = open_engine(tool.runtime.credentials, selected=selected, session=tool.session)
        answer = node.run(engine, read, tool.session.conversation_id)
    except MemoryFault as fault:
        raise fault from None
    except Exception:  # whatever it is, its text may hold a customer's words
        raise InternalError from None
    yield tool.create_text_message(answer.text)
    yield tool.create_json_message({"text": answer.text, **answer.outputs})
    for variable, value in answer.outputs.items():
        yield tool.create_variable_message(variable, value)
