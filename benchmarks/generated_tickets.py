"""Tickets for measurements: invented, of a helpdesk's usual size, the same for the same seed."""

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

TICKETS_PER_CUSTOMER = 5
CHANGED, BROKEN = 0.05, 0.01
"""Shares of the second round."""

_THINGS = [
    "the blue mug",
    "my order",
    "the invoice",
    "our Pro plan",
    "the webhook",
    "a refund",
    "the printer",
]
_THINGS += [
    "the export",
    "my account",
    "the sample kit",
    "the parcel",
    "the login page",
    "the licence",
    "the API",
]
_EVENTS = ["arrived broken", "never came", "shows the wrong address", "stopped working on Monday"]
_EVENTS += [
    "asks for a password again",
    "was charged twice",
    "is too slow in the evening",
    "has no VAT number",
]
_WISHES = [
    "Please call me in the morning.",
    "I would rather have an e-mail.",
    "We are in Berlin, not in Bonn.",
]
_WISHES += [
    "Could you send the form again?",
    "My colleague Ann takes over from June.",
    "It is urgent for us.",
]
_WISHES += [
    "I have tried a restart and another browser.",
    "The reference is on the label.",
    "Thank you so far.",
]
_ANSWERS = ["We are sorry, and look into it.", "A new one is on its way.", "Please try again now."]
_FIRST = datetime(2023, 1, 2, 8, tzinfo=UTC)


@dataclass(slots=True)
class Round:
    """One export.

    Attributes:
        tickets: in the canonical shape.
        changed: ids of tickets that say something else than in the round before.
        broken: ids of tickets that cannot be imported.
        messages: customer id → messages of the customer's own, of tickets that are not broken.
    """

    tickets: list[dict[str, object]]
    changed: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    messages: dict[str, int] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it as one JSON document, as helpdesks export it."""
        with path.open("w", encoding="utf-8") as file:
            file.write('{"tickets": [\n')
            file.write(",\n".join(json.dumps(ticket) for ticket in self.tickets))
            file.write("\n]}\n")


def generate(count: int, *, seed: int = 1, customers: str = "customer") -> Round:
    """Tickets of a first export.

    Args:
        count: how many; the customer's messages are 2.5 times as many, the customers a fifth.
        seed: of the random numbers.
        customers: what their ids begin with.
    """
    chance = random.Random(seed)
    some = max(1, count // TICKETS_PER_CUSTOMER)
    sizes = [2 + number % 2 for number in range(count)]
    owners = [f"{customers}-{number % some}" for number in range(count)]
    result = Round([_ticket(number, owners[number], size, chance) for number, size in enumerate(sizes)])
    for ticket, size in zip(result.tickets, sizes, strict=True):
        customer = str(ticket["customer_id"])
        result.messages[customer] = result.messages.get(customer, 0) + size
    return result


def second_round(first: Round, *, seed: int = 2) -> Round:
    """The same tickets some time later: 5 % have one more message of the customer, 1 % are broken.

    Broken ones are tickets whose every message has a time that cannot be read. What they said in the first
    round stays, so they still count in `messages`.
    """
    chance = random.Random(seed)
    count = len(first.tickets)
    chosen = chance.sample(range(count), round(count * (CHANGED + BROKEN)))
    changed, broken = set(chosen[: round(count * CHANGED)]), set(chosen[round(count * CHANGED) :])
    result = Round([], messages=dict(first.messages))
    for number, ticket in enumerate(first.tickets):
        copy: dict[str, object] = json.loads(json.dumps(ticket))
        ticket_id, customer = str(copy["ticket_id"]), str(copy["customer_id"])
        messages = copy["messages"]
        if isinstance(messages, list) and number in changed:
            messages.append(_message(len(messages), "customer", _FIRST + timedelta(days=900), chance))
            copy["updated_at"] = (_FIRST + timedelta(days=900)).isoformat()
            result.changed.add(ticket_id)
            result.messages[customer] += 1
        elif isinstance(messages, list) and number in broken:
            for message in messages:
                message["created_at"] = "yesterday"
            result.broken.add(ticket_id)
        result.tickets.append(copy)
    return result


def _ticket(number: int, customer: str, size: int, chance: random.Random) -> dict[str, object]:
    opened = _FIRST + timedelta(minutes=97 * number)
    messages: list[dict[str, object]] = []
    for turn in range(size):
        at = opened + timedelta(hours=5 * turn)
        messages.append(_message(len(messages), "customer", at, chance))
        if turn < size - 1:
            messages.append(_message(len(messages), "agent", at + timedelta(hours=2), chance))
    return {
        "ticket_id": f"T-{number}",
        "customer_id": customer,
        "subject": f"About {chance.choice(_THINGS)}",
        "status": "solved",
        "tags": ["generated"],
        "created_at": opened.isoformat(),
        "updated_at": (opened + timedelta(days=1)).isoformat(),
        "messages": messages,
    }


def _message(number: int, role: str, at: datetime, chance: random.Random) -> dict[str, object]:
    if role == "agent":
        text = " ".join(chance.sample(_ANSWERS, 2))
    else:
        text = f"Hello, {chance.choice(_THINGS)} {chance.choice(_EVENTS)}. "
        text += " ".join(chance.sample(_WISHES, 2)) + f" Number {chance.randrange(10**6)}."
    return {"message_id": f"m{number}", "role": role, "created_at": at.isoformat(), "text": text}
