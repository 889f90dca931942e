"""From a node's answer, or failure, to the messages the plugin SDK sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dify.answers import Answer
from dify.auditing import Deed, note
from dify.keys import NODE
from dify.nodes import NODES, is_change
from dify.opening import Selected, open_engine
from dify.parameters import Parameters
from memory.call_log import tell_failure
from memory.errors import InternalError, MemoryFault
from memory.pacing import in_turn

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
    read = Parameters(parameters)
    asked = {"conversation_id": tool.session.conversation_id, **{k: v for k, v in parameters.items() if v}}
    deed = Deed(NODE, name, is_change(name, read), asked)
    answer = _answer(tool, name, read, deed)
    yield tool.create_text_message(answer.text)
    yield tool.create_json_message({"text": answer.text, **answer.outputs})
    for variable, value in answer.outputs.items():
        yield tool.create_variable_message(variable, value)


@in_turn()
def _answer(tool: Tool, name: str, read: Parameters, deed: Deed) -> Answer:
    """What a node answers, noted in the audit, as its failure is."""
    node, form = NODES[name], tool.runtime.credentials
    try:
        selected = Selected()
        if node.selects_models:
            selected = Selected(read.model("embedding_model"), read.model("llm"))
        engine = open_engine(form, selected, tool.session)
        answer = node.run(engine, read, tool.session.conversation_id)
    except Exception as error:
        # Whatever is not ours may hold a customer's words in its text.
        fault = error if isinstance(error, MemoryFault) else InternalError()
        tell_failure(name, error, fault.code)
        note(form, deed, outcome=fault.code)
        raise fault from None
    note(form, deed, answer.outputs)
    return answer
