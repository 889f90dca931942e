"""What a ticket becomes when it is kept as it is: one event a message of the customer's own."""

from memory.policy import Policy, Redactor
from memory.records import Kind, Memory, Role, in_scope
from memory.scope import Scope
from memory.text import clean, digest, one_line, split
from tickets.model import Ticket, TicketMessage

MAX_REPLY_LENGTH = 600
"""Characters of the agent's answer that are kept beside a message."""
MAX_TOPIC_LENGTH = 200
_STEP = 1e-6


def memories_of(
    ticket: Ticket, scope: Scope, redactor: Redactor, policy: Policy, *, now: float
) -> list[Memory]:
    """One event a message of the customer's own, with what the ticket is about and what was answered."""
    memories = []
    topic = redactor.text(one_line(clean(ticket.subject or "")))[:MAX_TOPIC_LENGTH]
    for index, message in enumerate(ticket.messages):
        is_customer = message.role == "customer"
        # A private note is here only if the import asked for it.
        is_wanted = is_customer or not message.is_public
        if not is_wanted or message.is_redacted:
            continue
        text = redactor.text(clean(message.text))
        if not text:
            continue
        occurred_at = message.created_at.timestamp()
        memories.append(
            in_scope(
                Memory(
                    memory_id="",
                    text=text,
                    kind=Kind.EPISODIC,
                    role=Role.CUSTOMER if is_customer else Role.AGENT,
                    conversation_id=ticket.conversation_id,
                    case_id=ticket.case_id or "",
                    occurred_at=occurred_at,
                    expires_at=policy.expires_at(Kind.EPISODIC, occurred_at, None, source=ticket.source),
                    recorded_at=now + index * _STEP,
                    basis=_basis(ticket, message),
                    topic=topic,
                    reply=_reply_to(ticket, index, redactor),
                    source=ticket.source,
                    ticket_id=ticket.ticket_id,
                    message_id=message.message_id,
                    digest=digest(text),
                    parts=max(1, len(split(text))),
                ),
                scope,
            )
        )
    return memories


def _reply_to(ticket: Ticket, index: int, redactor: Redactor) -> str:
    """What an agent said next in public, before the customer spoke again; else "", cut to a few sentences."""
    for message in ticket.messages[index + 1 :]:
        if message.role == "customer":
            return ""
        if message.role == "agent" and message.is_public and message.text:
            # Redacted whole, then cut: half a secret would not be known for one.
            return split(redactor.text(clean(message.text)), length=MAX_REPLY_LENGTH)[0]
    return ""


def _basis(ticket: Ticket, message: TicketMessage) -> str:
    return f"ticket:{len(ticket.source)}:{ticket.source}:{ticket.ticket_id}:{message.message_id}"


def memory_id_of(ticket: Ticket, message: TicketMessage, scope: Scope) -> str:
    """The id the memory of a message has, whether or not the message makes one now."""
    probe = Memory(
        memory_id="",
        text="",
        kind=Kind.EPISODIC,
        occurred_at=0.0,
        recorded_at=0.0,
        basis=_basis(ticket, message),
        message_id=message.message_id,
    )
    return in_scope(probe, scope).memory_id
