"""The four nodes: inputs and settings in, one engine call, declared outputs out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from dify import answers
from dify.answers import Answer
from dify.parameters import Parameters
from memory.content import Note, read_content, read_metadata
from memory.engine import Engine
from memory.errors import ParameterInvalid
from memory.forgetting import MAX_MEMORY_IDS, Phase, Reach, Request
from memory.identity import Caller
from memory.policy import SECONDS_A_DAY
from memory.recalling import (
    DEFAULT_LIMIT,
    DEFAULT_MAX_TOKENS,
    LIMIT_RANGE,
    MAX_TOKENS_RANGE,
    Question,
)
from memory.records import Kind

MAX_DAYS = 36_500
MAX_NAME_LENGTH = 100
"""Characters of a slot's attribute or subject."""


class Mode(StrEnum):
    """What remember makes of its content."""

    AS_IS = "as_is"
    EXTRACT = "extract"


@dataclass(frozen=True, slots=True)
class Node:
    """One node: what it does with its parameters.

    Attributes:
        run: does the work; gets the engine, the parameters and the session's conversation id.
        selects_models: whether the node has selectors for the embedding model and the language model.
    """

    run: Callable[[Engine, Parameters, str | None], Answer]
    selects_models: bool = False


def _caller(parameters: Parameters, session_conversation_id: str | None) -> Caller:
    """The ids of the node's settings; the session's conversation id where none is set."""
    conversation_id = parameters.identifier("conversation_id")
    return Caller.checked(
        parameters.identifier("customer_id"),
        session_conversation_id if conversation_id is None else conversation_id,
        parameters.identifier("case_id"),
    )


def remember(engine: Engine, parameters: Parameters, session_conversation_id: str | None) -> Answer:
    """Store what is worth keeping."""
    caller = _caller(parameters, session_conversation_id)
    kind = parameters.choice("kind", Kind, None)
    statements, skipped = read_content(parameters.raw("content"), kind=kind)
    timezone = parameters.timezone("timezone")
    note = Note(
        attribute=_name(parameters, "attribute"),
        occurred_at=parameters.moment("occurred_at", timezone),
        extracts=parameters.choice("mode", Mode, Mode.AS_IS) is Mode.EXTRACT,
        zone=timezone,
        expires_in_seconds=_days(parameters, "expires_in_days"),
        metadata=read_metadata(parameters.raw("metadata")),
    )
    return answers.remembered(engine.remember(caller, statements, note, skipped=skipped))


def recall(engine: Engine, parameters: Parameters, session_conversation_id: str | None) -> Answer:
    """Find what is known and build the block for the prompt."""
    caller = _caller(parameters, session_conversation_id)
    question = Question(
        query=parameters.text("query"),
        limit=parameters.whole_number("limit", DEFAULT_LIMIT, low=LIMIT_RANGE[0], high=LIMIT_RANGE[1]),
        min_score=_share(parameters, "min_score"),
        max_tokens=parameters.whole_number(
            "max_tokens", DEFAULT_MAX_TOKENS, low=MAX_TOKENS_RANGE[0], high=MAX_TOKENS_RANGE[1]
        ),
        kinds=parameters.choices("kinds", Kind),
        since=parameters.moment("since"),
        until=parameters.moment("until"),
        case_id=caller.case_id,
        include_superseded=parameters.boolean("include_superseded"),
    )
    return answers.recalled(engine.recall(caller, question))


def forget(engine: Engine, parameters: Parameters, session_conversation_id: str | None) -> Answer:
    """Show or delete what is to be forgotten."""
    caller = _caller(parameters, session_conversation_id)
    memory_ids = parameters.texts("memory_ids")
    if len(memory_ids) > MAX_MEMORY_IDS:
        raise ParameterInvalid(name="memory_ids", expected=f"at most {MAX_MEMORY_IDS} ids")
    request = Request(
        reach=parameters.choice("scope", Reach, Reach.MATCHING) or Reach.MATCHING,
        phase=parameters.choice("action", Phase, Phase.PREVIEW) or Phase.PREVIEW,
        query=parameters.text("query"),
        memory_ids=tuple(memory_ids),
        before=parameters.moment("before"),
        kinds=parameters.choices("kinds", Kind),
    )
    return answers.forgotten(engine.forget(caller, request))


def link_conversation(engine: Engine, parameters: Parameters, session_conversation_id: str | None) -> Answer:
    """Say which customer a conversation belongs to."""
    caller = _caller(parameters, session_conversation_id)
    return answers.linked(engine.link(caller, relink=parameters.boolean("relink")))


def _share(parameters: Parameters, name: str) -> float | None:
    """A number from 0 to 1; None where none is given."""
    if parameters.raw(name) is None:
        return None
    return parameters.number(name, 0.0, low=0.0, high=1.0)


NODES: Mapping[str, Node] = {
    "remember": Node(remember, selects_models=True),
    "recall": Node(recall),
    "forget": Node(forget),
    "link_conversation": Node(link_conversation),
}


def is_change(name: str, parameters: Parameters) -> bool:
    """Whether a node writes or erases with these parameters."""
    if name == "forget":
        return str(parameters.raw("action")).strip().casefold() == Phase.DELETE
    return name != "recall"


def _name(parameters: Parameters, name: str) -> str:
    text = parameters.text(name)
    if len(text) > MAX_NAME_LENGTH or not text.isprintable():
        raise ParameterInvalid(name=name, expected=f"a word of up to {MAX_NAME_LENGTH} letters")
    return text


def _days(parameters: Parameters, name: str) -> float | None:
    if parameters.raw(name) is None:
        return None
    return parameters.number(name, 0.0, low=0.0, high=MAX_DAYS) * SECONDS_A_DAY
