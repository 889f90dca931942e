"""Requests to an endpoint group: with its key, as often as it takes, and failures told apart."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from requests.auth import AuthBase

NDJSON = "application/x-ndjson"
CONNECT_SECONDS = 15.0
READ_SECONDS = 300.0
"""Between two pieces of an answer; without progress lines an answer takes as long as the whole import."""
DEFAULT_RETRIES = 8
DEFAULT_RETRY_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
LONGEST_RETRY_AFTER_SECONDS = 300.0

_TRANSIENT = {429, 500, 502, 503, 504, 520, 521, 522, 523, 524}
_REJECTED = {413, 422}
_MAX_MESSAGE = 300


class Stopped(Exception):
    """Nothing can be done until somebody acts; the text says who and how."""


class Rejected(Exception):
    """The endpoint cannot read this body.

    Attributes:
        code: the endpoint's.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Transient(Exception):
    """Worth another try.

    Attributes:
        seconds: how long the endpoint asks to wait; None if it does not say.
        is_cut: whether an answer had begun.
    """

    def __init__(self, reason: str, seconds: float | None = None, *, is_cut: bool = False) -> None:
        super().__init__(reason)
        self.seconds, self.is_cut = seconds, is_cut


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


@dataclass(slots=True)
class Tries:
    """The tries of one request: how often it failed since it last got further.

    Attributes:
        patience: how often and how long.
        tell: called with one sentence before each wait.
    """

    patience: Patience
    tell: Callable[[str], None]
    _failed: int = 0

    def start_anew(self) -> None:
        """It got further: earlier failures do not count any more."""
        self._failed = 0

    def wait(self, failure: Transient) -> None:
        """Wait before the next try.

        Raises:
            Stopped: it was tried often enough.
        """
        self._failed += 1
        if self._failed > self.patience.retries:
            raise Stopped(f"{failure} Gave up after {self._failed} tries.") from None
        seconds = self.patience.wait(self._failed, failure.seconds)
        self.tell(f"{failure} Trying again in {seconds:.0f} s ({self._failed} of {self.patience.retries}).")
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Client:
    """Sends requests to one endpoint group.

    Attributes:
        url: the group's address, as Dify shows it.
        key: its API key.
        deed: what is asked of it, for messages: "import".
    """

    url: str
    key: str = field(repr=False)
    deed: str
    _session: requests.Session = field(default_factory=requests.Session, repr=False)

    @contextmanager
    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> Iterator[requests.Response]:
        """The answer to one request, of status 200 or 206, to be read while it is open.

        Raises:
            Transient: worth another try; also where the answer breaks off while it is read.
            Rejected: the endpoint cannot read the body.
            Stopped: somebody has to act.
        """
        is_begun = False
        try:
            with self._session.request(
                method,
                f"{self.url}{path}",
                params=dict(query),
                data=body,
                headers=dict(headers),
                auth=_Bearer(self.key),
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
                stream=True,
            ) as answer:
                is_begun = True
                if answer.status_code not in {200, 206}:
                    error = error_in(parsed(answer.content))
                    raise failure_of(answer.status_code, answer.headers, error, self.deed)
                yield answer
        except requests.exceptions.SSLError:
            raise Stopped("The endpoint's certificate cannot be verified.") from None
        except (
            requests.exceptions.ConnectionError,
            requests.exceptions.Timeout,
            requests.exceptions.ChunkedEncodingError,
            requests.exceptions.ContentDecodingError,
        ):
            reason = "The answer broke off." if is_begun else "The endpoint cannot be reached."
            raise Transient(reason, is_cut=is_begun) from None
        except requests.exceptions.RequestException as error:
            raise Stopped(f"The request cannot be sent: {type(error).__name__}.") from None


class _Bearer(AuthBase):
    """The key, in a way that no .netrc file replaces."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def failure_of(
    status: int | None, headers: Mapping[str, str], error: Mapping[str, Any] | None, deed: str
) -> Exception:
    """What an answer that is no report means; `status` is None for a failure after a good start."""
    code = plain(error.get("code")) if error else ""
    named = f"{status or f'the {deed}'}, {code}" if code else str(status)
    is_transient = bool(error.get("retryable")) if error else status in _TRANSIENT
    if is_transient or status == 429:
        return Transient(f"The endpoint is not ready ({named}).", _retry_after(headers))
    if status in _REJECTED and code:
        detail = plain(error.get("message")) if error else ""
        return Rejected(_detail_code(code, detail))
    if status in {401, 403}:
        return Stopped(f"The endpoint refuses the key in CUSTOMER_MEMORY_API_KEY ({named}).")
    if status is not None and 300 <= status < 400:
        return Stopped(f"The address redirects elsewhere ({named}); give the one it leads to.")
    if status == 404:
        return Stopped(f"There is no Customer Memory endpoint at this address ({named}).")
    message = plain(error.get("message")) if error else ""
    return Stopped(f"The endpoint refuses the {deed} ({named}). {message}".rstrip())


def _detail_code(code: str, message: str) -> str:
    """The reader's own code, which the endpoint gives in its message."""
    detail = message.partition("cannot be read: ")[2].rstrip(".").split(" ")[0]
    return detail if code == "export_invalid" and detail.replace("_", "").isalnum() else code


def error_in(value: Any) -> Mapping[str, Any] | None:
    """The failure an answer of the endpoint holds; None if it holds none."""
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else None


def parsed(content: bytes) -> Any:
    """JSON; None if it is none."""
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


def plain(value: object) -> str:
    """Text of the endpoint as one short line that a terminal shows as it is."""
    text = value if isinstance(value, str) else ""
    return "".join(c if c.isprintable() else " " for c in text)[:_MAX_MESSAGE]
