"""Sends chunks to the endpoint and reads its answers, as often as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import requests

from scripts.requesting import (
    NDJSON,
    Client,
    Patience,
    Stopped,
    Transient,
    Tries,
    error_in,
    failure_of,
    parsed,
)

BODY_TYPE = "application/x-ndjson+gzip"
CUT_ANSWERS = 2
"""After so many answers that broke off, plain JSON is asked for instead of progress lines."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the endpoint says it did in one request.

    Attributes:
        cursor: where to go on in the same body; None if it is done.
        tickets: how many of each status.
        stored, removed: memories.
        problems: (ticket id, code, path in the body).
        omitted: problems it did not list.
    """

    cursor: int | None
    tickets: Mapping[str, int]
    stored: int
    removed: int
    problems: tuple[tuple[str | None, str, str], ...]
    omitted: int


@dataclass(frozen=True)
class Endpoint:
    """The import of one endpoint group.

    Attributes:
        url: the group's address, as Dify shows it.
        key: its API key.
        query: what every request says.
        patience: see there.
        tell: called with one sentence before each wait.
    """

    url: str
    key: str = field(repr=False)
    query: Mapping[str, str]
    patience: Patience
    tell: Callable[[str], None]

    @cached_property
    def _client(self) -> Client:
        return Client(self.url, self.key, "import")

    def reports(
        self,
        body: bytes,
        query: Mapping[str, str],
        *,
        cursor: int = 0,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> Iterator[Report]:
        """Import one body, request after request until it is done.

        Args:
            body: the chunk.
            query: what only this body's requests say.
            cursor: where to begin in it.
            on_progress: called with the number of tickets done of this body.

        Returns:
            A report a request.

        Raises:
            Rejected: the body cannot be read.
            Stopped: the endpoint does not let us, or cannot be reached.
        """
        asked = {**self.query, **query}
        while True:
            report = self._persistent(body, asked, cursor, on_progress)
            if report.cursor is not None and report.cursor <= cursor:
                raise Stopped("The endpoint makes no progress: its answer points back to where it began.")
            yield report
            if report.cursor is None:
                return
            cursor = report.cursor

    def _persistent(
        self, body: bytes, query: Mapping[str, str], cursor: int, on_progress: Callable[[int], None]
    ) -> Report:
        """One request, again and again until it is answered.

        To repeat one is safe: what the first has imported counts as unchanged in the second.
        """
        tries, cuts = Tries(self.patience, self.tell), 0
        furthest = cursor

        def note(done: int) -> None:
            nonlocal furthest
            if done > furthest:
                furthest = done
                tries.start_anew()
            on_progress(done)

        while True:
            try:
                return self._once(body, query, cursor, note, wants_lines=cuts < CUT_ANSWERS)
            except Transient as failure:
                cuts += failure.is_cut
                tries.wait(failure)

    def _once(
        self,
        body: bytes,
        query: Mapping[str, str],
        cursor: int,
        on_progress: Callable[[int], None],
        *,
        wants_lines: bool,
    ) -> Report:
        with self._client.send(
            "POST",
            "/tickets/import",
            query={**query, **({"cursor": str(cursor)} if cursor else {})},
            headers={
                "Content-Type": BODY_TYPE,
                "Accept": f"{NDJSON}, application/json;q=0.5" if wants_lines else "application/json",
            },
            body=body,
        ) as answer:
            if NDJSON in answer.headers.get("Content-Type", ""):
                return _last_line(answer, on_progress)
            return _report(parsed(answer.content))


def _last_line(answer: requests.Response, on_progress: Callable[[int], None]) -> Report:
    """Follow the progress to the report."""
    for line in answer.iter_lines():
        value = parsed(line)
        if not isinstance(value, dict):
            continue
        error = error_in(value)
        if error is not None:
            raise failure_of(None, answer.headers, error, "import")
        if "complete" in value:
            return _report(value)
        done = value.get("done")
        if isinstance(done, int):
            on_progress(done)
    raise Transient("The answer broke off.", is_cut=True)


def _report(value: Any) -> Report:
    """An answer as a report.

    Raises:
        Stopped: it is none.
    """
    try:
        cursor = None if value["complete"] else int(value["cursor"])
        return Report(
            cursor,
            {str(status): int(count) for status, count in value["tickets"].items()},
            int(value["memories"]["stored"]),
            int(value["memories"]["removed"]),
            tuple((p["ticket_id"], str(p["code"]), str(p["path"])) for p in value["problems"]),
            int(value["problems_omitted"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Stopped("What answers at this address is no Customer Memory endpoint.") from None
