"""One request to import: reading it, running it in batches within its time, and reporting."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from dify.nodes import Mode
from dify.parameters import Parameters
from dify.web_errors import MediaTypeUnsupported, SignatureInvalid, Unauthorized
from memory.engine import Engine
from memory.errors import ParameterInvalid
from memory.importing import neighbourhood
from memory.pacing import background, breathe
from memory.ticket_results import Status, TicketResult
from tickets.model import ParseOptions, Ticket, TicketProblem
from tickets.times import parse_time

DEFAULT_IMPORT_SECONDS = 100.0
"""Time for one request; proxies in front of Dify often cut at 120 s."""
IMPORT_SECONDS_RANGE = (1.0, 500.0)
MAX_EXPANDED_BYTES = 60_000_000
"""What a gzip body may expand to; keeps the plugin's memory bounded."""
BATCH_SECONDS = 4.0
"""What a batch should take: it is the step of the progress and of the time limit."""
FIRST_BATCH = 200
FIRST_EXTRACTED_BATCH = 60
BATCH_RANGE = (50, 3_000)
"""Messages in a batch. Large ones are written in fewer requests."""
LARGEST_EXCESS = 1.5
"""How much larger a batch may get to complete what is written into one collection."""
MAX_PROBLEM_BYTES = 1_000_000
"""What the problems of a report may take; the rest is counted only. An answer stays under 2 MB."""
MAX_DELIVERY_AGE_SECONDS = 900.0
"""How old a helpdesk's signed delivery may be, so that one that was overheard is of no use later."""

_MEDIA_TYPES = ("json", "ndjson", "csv", "gzip", "octet-stream", "text/plain", "tab-separated")

type Item = Ticket | TicketProblem


@dataclass(frozen=True, slots=True)
class Work:
    """What a request asks to import.

    Attributes:
        items: tickets, and what could not be read of the body; the same body gives the same order.
        start: how many of them an earlier request has done.
        is_dry: whether to write nothing.
        seconds: time limit.
        extracts: whether a language model picks facts instead of keeping every message.
        zone: time zone of the customers, for words such as "yesterday".
        restores: whether what was forgotten may come back.
    """

    items: Sequence[Item]
    start: int
    is_dry: bool
    seconds: float
    extracts: bool = False
    zone: tzinfo = UTC
    restores: bool = False


def seconds_allowed(settings: Mapping[str, Any]) -> float:
    """The time for one long answer, by the endpoint's settings.

    Raises:
        ParameterInvalid: it is no number, or out of range.
    """
    low, high = IMPORT_SECONDS_RANGE
    return Parameters(settings).number("import_seconds", DEFAULT_IMPORT_SECONDS, low=low, high=high)


def read_import(
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    settings: Mapping[str, Any],
    *,
    is_authorized: bool,
) -> Work:
    """Read a request to import, and make sure that its sender may.

    Args:
        query: format, source, timezone, include_private, dry_run, restore, customer_field,
            customer_map, cursor.
        headers: names in lower case.
        body: the export, or a helpdesk's signed delivery.
        settings: the endpoint's settings.
        is_authorized: whether the sender has the endpoint's key.

    Raises:
        Unauthorized, SignatureInvalid: the sender has neither key nor a right signature.
        MediaTypeUnsupported, ParameterInvalid, TicketFormatError: it cannot be read.
    """
    from tickets.reader import read_tickets  # brings the HTML library, which starting can do without

    asked = Parameters(query)
    options = ParseOptions(
        source=asked.text("source") or None,
        timezone=asked.text("timezone") or None,
        include_private=asked.boolean("include_private"),
        customer_field=asked.text("customer_field") or None,
        customer_map=_customer_map(asked),
    )
    start = asked.whole_number("cursor", 0, low=0, high=10**9)
    is_dry = asked.boolean("dry_run")
    extracts = asked.choice("mode", Mode, Mode.AS_IS) is Mode.EXTRACT
    zone = UTC if options.timezone is None else asked.timezone("timezone")
    seconds = seconds_allowed(settings)
    content_type = headers.get("content-type", "").casefold()
    chosen = asked.text("format") or None
    if not is_authorized:
        chosen, body = _delivery(headers, body, str(settings.get("webhook_secret") or ""))
        content_type = "application/json"
    if content_type and not any(kind in content_type for kind in _MEDIA_TYPES):
        raise MediaTypeUnsupported
    with background():
        breathe()
        items = list(
            read_tickets(
                body,
                format=chosen,
                options=options,
                content_type=content_type or None,
                max_bytes=MAX_EXPANDED_BYTES,
                pause=breathe,
            )
        )
        # Any order is right; in this one a batch fills few collections, with many rows each.
        items.sort(key=lambda item: neighbourhood(item) if isinstance(item, Ticket) else -1)
    return Work(items, start, is_dry, seconds, extracts, zone, restores=asked.boolean("restore"))


def _customer_map(asked: Parameters) -> dict[str, str]:
    text = asked.text("customer_map")
    if not text:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise ParameterInvalid(name="customer_map", expected="a JSON object of texts")
    return value


def _delivery(headers: Mapping[str, str], body: bytes, secret: str) -> tuple[str, bytes]:
    """A helpdesk's own delivery, if its signature is right: its format and the body to read.

    Raises:
        Unauthorized: it has no signature either.
        SignatureInvalid: it has one, and it is wrong or too old.
    """
    from tickets.webhooks import intercom_payload, verify_intercom, verify_zendesk, zendesk_payload

    zendesk = headers.get("x-zendesk-webhook-signature")
    intercom = headers.get("x-hub-signature")
    if zendesk is not None:
        sent_at = headers.get("x-zendesk-webhook-signature-timestamp", "")
        if not verify_zendesk(secret, sent_at, body, zendesk) or not _is_fresh(sent_at):
            raise SignatureInvalid
        return "zendesk", json.dumps(zendesk_payload(body)).encode()
    if intercom is not None:
        if not verify_intercom(secret, body, intercom):
            raise SignatureInvalid
        return "intercom", json.dumps(intercom_payload(body)).encode()
    raise Unauthorized


def _is_fresh(sent_at: str) -> bool:
    age = datetime.now(UTC) - parse_time(sent_at, "UTC")
    return abs(age.total_seconds()) <= MAX_DELIVERY_AGE_SECONDS


class Import:
    """One import under way.

    Args:
        engine: where to.
        work: what.
    """

    def __init__(self, engine: Engine, work: Work) -> None:
        self._engine, self._work = engine, work
        self._done = min(work.start, len(work.items))
        self._tickets: Counter[Status] = Counter()
        self._stored = self._removed = self._rejected = self._tokens = 0
        self._redacted: Counter[str] = Counter()
        self._problems: list[dict[str, Any]] = []
        self._problem_bytes = self._omitted = 0
        self._started = time.monotonic()

    @property
    def tickets(self) -> list[tuple[str, str]]:
        """Source and id of each ticket."""
        return [(item.source, item.ticket_id) for item in self._work.items if isinstance(item, Ticket)]

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Progress, a line a batch, and the report as the last line."""
        for _ in self.steps():
            yield self._progress()
        yield self.report()

    def steps(self) -> Iterator[None]:
        """Import batch after batch until everything is done or the time is over.

        Raises:
            SetupError, ServiceError: what was done until then stays done.
        """
        size = FIRST_EXTRACTED_BATCH if self._work.extracts else FIRST_BATCH
        while self._done < len(self._work.items):
            begun = time.monotonic()
            batch = self._next_batch(size)
            self._run(batch)
            self._done += len(batch)
            took = max(0.001, time.monotonic() - begun)
            size = int(min(BATCH_RANGE[1], max(BATCH_RANGE[0], size * min(4.0, BATCH_SECONDS / took))))
            yield
            if time.monotonic() - self._started + took > self._work.seconds:
                return

    def report(self) -> dict[str, Any]:
        """What was done, in counts, and every result that was no plain success."""
        total = len(self._work.items)
        is_complete = self._done >= total
        return {
            "complete": is_complete,
            "cursor": None if is_complete else str(self._done),
            "dry_run": self._work.is_dry,
            "total": total,
            "done": self._done,
            "tickets": {str(status): self._tickets[status] for status in Status},
            "memories": {"stored": self._stored, "removed": self._removed},
            "facts_rejected": self._rejected,
            "redacted": dict(self._redacted),
            "tokens": self._tokens,
            "problems": self._problems,
            "problems_omitted": self._omitted,
            "seconds": round(time.monotonic() - self._started, 3),
        }

    def _progress(self) -> dict[str, Any]:
        seconds = time.monotonic() - self._started
        done = self._done - self._work.start
        rate = done / seconds if seconds else 0.0
        left = len(self._work.items) - self._done
        return {
            "done": self._done,
            "total": len(self._work.items),
            "rate": round(rate, 1),
            "eta_seconds": round(left / rate, 1) if rate else None,
        }

    def _next_batch(self, messages: int) -> Sequence[Item]:
        """The next items, of about so many messages; a little more where that completes a neighbourhood."""
        items, start = self._work.items, self._done
        end, taken = start, 0
        while end < len(items) and taken < messages:
            taken += _size(items[end])
            end += 1
        further, most = end, int(messages * LARGEST_EXCESS)
        while further < len(items) and taken < most and _is_beside(items[further - 1], items[further]):
            taken += _size(items[further])
            further += 1
        is_complete = further == len(items) or not _is_beside(items[further - 1], items[further])
        return items[start : further if is_complete else end]

    def _run(self, batch: Sequence[Item]) -> None:
        tickets = [item for item in batch if isinstance(item, Ticket)]
        results = self._imported(tickets) if tickets else ()
        for position, item in enumerate(batch, start=self._done):
            if isinstance(item, TicketProblem):
                self._tickets[Status.FAILED] += not self._is_told(position, item)
                self._note(item.ticket_id, item.code, item.path)
            else:
                for problem in item.problems:
                    self._note(problem.ticket_id, problem.code, problem.path)
        for result in results:
            self._count(result)

    def _is_told(self, position: int, problem: TicketProblem) -> bool:
        """Whether the item before is another problem of the same ticket, which failed only once."""
        before = self._work.items[position - 1] if position else None
        if not isinstance(before, TicketProblem) or problem.ticket_id is None:
            return False
        return before.ticket_id == problem.ticket_id

    def _imported(self, tickets: Sequence[Ticket]) -> Sequence[TicketResult]:
        work = self._work
        imported = self._engine.import_tickets(
            tickets, extracts=work.extracts, zone=work.zone, is_dry=work.is_dry, restores=work.restores
        )
        self._redacted.update(imported.redacted)
        self._tokens += imported.tokens
        return imported.results

    def _count(self, result: TicketResult) -> None:
        self._tickets[result.status] += 1
        self._stored += result.stored
        self._removed += result.removed
        self._rejected += result.rejected
        if result.code:
            self._note(result.ticket_id, result.code, "")

    def _note(self, ticket_id: str | None, code: str, path: str) -> None:
        problem = {"ticket_id": ticket_id, "code": code, "path": path}
        self._problem_bytes += len(json.dumps(problem))
        if self._problem_bytes > MAX_PROBLEM_BYTES:
            self._omitted += 1
        else:
            self._problems.append(problem)


def _size(item: Item) -> int:
    return max(1, len(item.messages)) if isinstance(item, Ticket) else 1


def _is_beside(item: Item, other: Item) -> bool:
    """Whether two tickets' memories lie in one collection, so that one write can hold both."""
    if not isinstance(item, Ticket) or not isinstance(other, Ticket):
        return False
    return neighbourhood(item) == neighbourhood(other)
