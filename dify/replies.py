"""From a node's answer, or failure, to the messages the plugin SDK sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dify.nodes import NODES
from dify.opening import Selected, open_engine
from dify.parameters import Parameters
from memory.errors import InternalError, MemoryFault

if TYPE_CHECKING:
    from dify_plugin import Tool
    from dify_plugin.entities.tool import ToolInvokeMessage


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
        selected = Selected()
        if node.selects_models:
            selected = Selected(read.model("embedding_model"), read.model("llm"))
        engine = open_engine(tool.runtime.credentials, selected, tool.session)
        answer = node.run(engine, read, tool.session.conversation_id)
    except MemoryFault as fault:
        raise fault from None
    except Exception:  # whatever it is, its text may hold a customer's words
        raise InternalError from None
    yield tool.create_text_message(answer.text)
    yield tool.create_json_message({"text": answer.text, **answer.outputs})
    for variable, value in answer.outputs.items():
        yield tool.create_variable_message(variable, value)
