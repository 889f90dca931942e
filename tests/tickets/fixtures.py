"""The fixtures of the formats, and how a result is written in their expected files."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from tickets.model import (
    ParseOptions,
    Ticket,
    TicketMessage,
    TicketProblem,
    default_conversation_id,
)

DATA = Path(__file__).parents[1] / "data" / "tickets"
CASES = sorted(path for path in DATA.glob("*/*") if not path.name.endswith(".expected.json"))

Described = dict[str, object]


def case_name(path: Path) -> str:
    """Name a case by its format and situation."""
    return f"{path.parent.name}-{path.stem}"


def load_expected(path: Path) -> tuple[ParseOptions, list[Described]]:
    """Read what belongs to a case: the options to parse with, and the expected results."""
    expected = json.loads(path.with_name(f"{path.stem}.expected.json").read_text("utf-8"))
    return ParseOptions(**expected.get("options", {})), cast("list[Described]", expected["results"])


def describe(results: Iterable[Ticket | TicketProblem]) -> list[Described]:
    """Write results as expected files do: what has its default value is left out."""
    return [_problem(result) if isinstance(result, TicketProblem) else _ticket(result) for result in results]


def _ticket(ticket: Ticket) -> Described:
    conversation_id: str | None = ticket.conversation_id
    if conversation_id == default_conversation_id(ticket.source, ticket.ticket_id):
        conversation_id = None
    described: Described = {
        "source": ticket.source,
        "ticket_id": ticket.ticket_id,
        "customer_id": ticket.customer_id,
        "customer_email": ticket.customer_email,
        "conversation_id": conversation_id,
        "case_id": ticket.case_id,
        "subject": ticket.subject,
        "status": ticket.status,
        "tags": list(ticket.tags) or None,
        "created_at": ticket.created_at and ticket.created_at.isoformat(),
        "updated_at": ticket.updated_at and ticket.updated_at.isoformat(),
        "problems": [_problem(problem) for problem in ticket.problems] or None,
        "is_partial": ticket.is_partial or None,
    }
    described = {key: value for key, value in described.items() if value is not None}
    return {**described, "messages": [_message(message) for message in ticket.messages]}


def _message(message: TicketMessage) -> Described:
    described: Described = {
        "message_id": message.message_id,
        "role": message.role,
        "text": message.text,
        "created_at": message.created_at.isoformat(),
        "author": message.author,
        "is_public": None if message.is_public else False,
        "is_redacted": message.is_redacted or None,
        "attachments": list(message.attachments) or None,
    }
    return {key: value for key, value in described.items() if value is not None}


def _problem(problem: TicketProblem) -> Described:
    described: Described = {"problem": problem.code, "path": problem.path}
    return described if problem.ticket_id is None else {**described, "ticket_id": problem.ticket_id}
