"""Sends chunks to the endpoint and reads its answers, as often as it takes."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from requests.auth import AuthBase

NDJSON = "application/x-ndjson"
BODY_TYPE = "application/x-ndjson+gzip"
CONNECT_SECONDS = 15.0
READ_SECONDS = 300.0
"""Between two pieces of an answer; without progress lines an answer takes as long as the whole import."""
DEFAULT_RETRIES = 8
DEFAULT_RETRY_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
LONGEST_RETRY_AFTER_SECONDS = 300.0
CUT_ANSWERS = 2
"""After so many answers that broke off, plain JSON is asked for instead of progress lines."""

_TRANSIENT = {429, 500, 502, 503, 504, 520, 521, 522, 523, 524}
_REJECTED = {413, 422}
_MAX_MESSAGE = 300


class Stopped(Exception):
    """Nothing can be imported until somebody acts; the text says who and how."""


class Rejected(Exception):
    """The endpoint cannot read this chunk.

    Attributes:
        code: the endpoint's.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _Transient(Exception):
    """Worth another try.

    Attributes:
        seconds: how long the endpoint asks to wait; None if it does not say.
        is_cut: whether an answer had begun.
    """

    def __init__(self, reason: str, seconds: float | None = None, *, is_cut: bool = False) -> None:
        super().__init__(reason)
        self.seconds, self.is_cut = seconds, is_cut


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often to try again, and how long to wait before.

    Attributes:
        retries: tries after the first one, for each request; progress made starts the count anew.
        seconds: before the first of them; doubled each time, up to 60, and spread at random from half
            of it to all of it. Where the endpoint says how long (Retry-After), that counts.
    """

    retries: int = DEFAULT_RETRIES
    seconds: float = DEFAULT_RETRY_SECONDS

    def wait(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait before try number `attempt`, counted from 1."""
        if asked is not None:
            return min(asked, LONGEST_RETRY_AFTER_SECONDS)
        longest = min(LONGEST_WAIT_SECONDS, self.seconds * 2.0 ** (attempt - 1))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads callers, it hides nothing


@dataclass(frozen=True, slots=True)
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
    _session: requests.Session = field(default_factory=requests.Session, repr=False)

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
        attempt = cuts = 0
        furthest = cursor

        def note(done: int) -> None:
            nonlocal attempt, furthest
            if done > furthest:
                attempt, furthest = 0, done
            on_progress(done)

        while True:
            try:
                return self._once(body, query, cursor, note, wants_lines=cuts < CUT_ANSWERS)
            except _Transient as failure:
                cuts += failure.is_cut
                attempt += 1
                if attempt > self.patience.retries:
                    raise Stopped(f"{failure} Gave up after {attempt} tries.") from None
                seconds = self.patience.wait(attempt, failure.seconds)
                self.tell(
                    f"{failure} Trying again in {seconds:.0f} s ({attempt} of {self.patience.retries})."
                )
            time.sleep(seconds)

    def _once(
        self,
        body: bytes,
        query: Mapping[str, str],
        cursor: int,
        on_progress: Callable[[int], None],
        *,
        wants_lines: bool,
    ) -> Report:
        is_begun = False
        try:
            with self._session.post(
                f"{self.url}/tickets/import",
                params={**query, **({"cursor": str(cursor)} if cursor else {})},
                data=body,
                headers={
                    "Content-Type": BODY_TYPE,
                    "Accept": f"{NDJSON}, application/json;q=0.5" if wants_lines else "application/json",
                },
                auth=_Bearer(self.key),
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
                stream=True,
            ) as answer:
                is_begun = True
                if answer.status_code not in {200, 206}:
                    raise _failure(answer.status_code, answer.headers, _error_in(_parsed(answer.content)))
                if NDJSON in answer.headers.get("Content-Type", ""):
                    return _last_line(answer, on_progress)
                return _report(_parsed(answer.content))
        except requests.exceptions.SSLError:
            raise Stopped("The endpoint's certificate cannot be verified.") from None
        except (
            requests.exceptions.ConnectionError,
            requests.exceptions.Timeout,
            requests.exceptions.ChunkedEncodingError,
            requests.exceptions.ContentDecodingError,
        ):
            reason = "The answer broke off." if is_begun else "The endpoint cannot be reached."
            raise _Transient(reason, is_cut=is_begun) from None
        except requests.exceptions.RequestException as error:
            raise Stopped(f"The request cannot be sent: {type(error).__name__}.") from None


class _Bearer(AuthBase):
    """The key, in a way that no .netrc file replaces."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _last_line(answer: requests.Response, on_progress: Callable[[int], None]) -> Report:
    """Follow the progress to the report."""
    for line in answer.iter_lines():
        value = _parsed(line)
        if not isinstance(value, dict):
            continue
        error = _error_in(value)
        if error is not None:
            raise _failure(None, answer.headers, error)
        if "complete" in value:
            return _report(value)
        done = value.get("done")
        if isinstance(done, int):
            on_progress(done)
    raise _Transient("The answer broke off.", is_cut=True)


def _failure(status: int | None, headers: Mapping[str, str], error: Mapping[str, Any] | None) -> Exception:
    """What an answer that is no report means; `status` is None for a failure after a good start."""
    code = _plain(error.get("code")) if error else ""
    named = f"{status or 'the import'}, {code}" if code else str(status)
    is_transient = bool(error.get("retryable")) if error else status in _TRANSIENT
    if is_transient or status == 429:
        return _Transient(f"The endpoint is not ready ({named}).", _retry_after(headers))
    if status in _REJECTED and code:
        detail = _plain(error.get("message")) if error else ""
        return Rejected(_detail_code(code, detail))
    if status in {401, 403}:
        return Stopped(f"The endpoint refuses the key in CUSTOMER_MEMORY_API_KEY ({named}).")
    if status is not None and 300 <= status < 400:
        return Stopped(f"The address redirects elsewhere ({named}); give the one it leads to.")
    if status == 404:
        return Stopped(f"There is no Customer Memory endpoint at this address ({named}).")
    message = _plain(error.get("message")) if error else ""
    return Stopped(f"The endpoint refuses the import ({named}). {message}".rstrip())


def _detail_code(code: str, message: str) -> str:
    """The reader's own code, which the endpoint gives in its message."""
    detail = message.partition("cannot be read: ")[2].rstrip(".").split(" ")[0]
    return detail if code == "export_invalid" and detail.replace("_", "").isalnum() else code


def _error_in(value: Any) -> Mapping[str, Any] | None:
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else None


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


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of a Retry-After header, which may also name a time."""
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _plain(value: object) -> str:
    """Text of the endpoint as one short line that a terminal shows as it is."""
    text = value if isinstance(value, str) else ""
    return "".join(c if c.isprintable() else " " for c in text)[:_MAX_MESSAGE]
