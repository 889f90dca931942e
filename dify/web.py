"""The HTTP side: who may ask, what is asked, and the answer as JSON. No failure leaves as anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from werkzeug import Request, Response

from dify.auditing import Deed, note, note_lines
from dify.calls import Call, Result
from dify.failures import body_of, headers_of, status_of
from dify.keys import Right, authenticate
from dify.routes import ROUTES, Route
from dify.web_errors import (
    BodyTooLarge,
    ExportInvalid,
    MethodNotAllowed,
    NotFound,
)
from memory.call_log import tell_failure
from memory.errors import InternalError, MemoryFault
from memory.pacing import in_turn
from tickets.errors import TicketFormatError

if TYPE_CHECKING:
    from dify_plugin.core.runtime import Session

MAX_BODY_BYTES = 10_485_760
"""At this length Dify's web server cuts a body in silence, so a body this long is not whole."""

PIECE_BYTES = 500_000
"""What of a body goes into one message of the plugin's protocol, whose lines Dify bounds."""

JSON_TYPE = "application/json"
NDJSON_TYPE = "application/x-ndjson"
UNKNOWN_VERB = "unknown"
AUDIT_HEADER = "X-Audit-Failed"
"""Says, with the code of the failure, that what was done could not be noted in the audit."""


def respond(request: Request, settings: Mapping[str, Any], session: Session | None) -> Response:
    """Answer one request.

    Args:
        request: as the SDK hands it over.
        settings: the endpoint's settings.
        session: the way back into Dify.

    Returns:
        JSON in every case; NDJSON, streamed, where the caller asked for it and the path can.
    """
    try:
        result = _result(request, settings, session)
        if result.lines is not None:
            lines = _encoded(result.lines, _verb(request))
            return Response(lines, result.status, content_type=NDJSON_TYPE)
        if result.text is not None:
            return Response(result.text[0], result.status, content_type=result.text[1])
        return _json(result.body, result.status, result.headers)
    except Exception as error:
        fault = as_fault(error)
        tell_failure(_verb(request), error, fault.code)
    return _json(body_of(fault), status_of(fault), headers_of(fault))


def as_fault(error: Exception) -> MemoryFault:
    """Any failure as one of ours. Of others nothing is kept, since their text may hold a customer's words."""
    if isinstance(error, MemoryFault):
        return error
    if not isinstance(error, TicketFormatError):
        return InternalError()
    if error.code == "body_too_large":
        return BodyTooLarge(limit=MAX_BODY_BYTES)
    return ExportInvalid(detail=error.code, where=f" at {error.path}" if error.path else "")


def _path(request: Request) -> str:
    return request.path.rstrip("/") or "/"


def _verb(request: Request) -> str:
    """What is asked for; of a path or method there is not, no word of the caller's."""
    route = ROUTES.get(_path(request), {}).get(request.method)
    return route.handler.__name__ if route else UNKNOWN_VERB


def _result(request: Request, settings: Mapping[str, Any], session: Session | None) -> Result:
    methods = ROUTES.get(_path(request))
    if methods is None:
        raise NotFound(what="path")
    route = methods.get(request.method)
    if route is None:
        raise MethodNotAllowed(allowed=", ".join(sorted(methods)))
    body = request.get_data()
    if len(body) >= MAX_BODY_BYTES:
        raise BodyTooLarge(limit=MAX_BODY_BYTES)
    headers = {name.casefold(): value for name, value in request.headers.items()}
    key = authenticate(headers, settings)
    query = request.args.to_dict()
    deed = Deed(key.name if key else "", route.handler.__name__, _is_change(route, request.method), query)
    return _noted(route, Call(query, headers, body, settings, session, key, deed))


def _is_change(route: Route, method: str) -> bool:
    return route.right in {Right.WRITE, Right.ERASE} or (route.right is Right.ADMIN and method != "GET")


@in_turn()
def _noted(route: Route, call: Call) -> Result:
    """The result of a call that is let in, or the refusal, with an entry in the audit."""
    try:
        route.admit(call.key)
        result = route.handler(call)
    except Exception as error:
        note(call.settings, call.deed, outcome=as_fault(error).code)
        raise
    if result.lines is not None:
        return replace(result, lines=note_lines(call.settings, call.deed, result.lines))
    failure = note(call.settings, call.deed, result.body)
    return replace(result, headers={AUDIT_HEADER: failure} if failure else {})


def _encoded(lines: Iterator[Mapping[str, Any] | bytes], verb: str) -> Iterator[bytes]:
    """Lines of NDJSON, as objects or ready-made; what goes wrong on the way becomes the last line."""
    try:
        for line in lines:
            yield from _pieces(line if isinstance(line, bytes) else _dumped(line) + b"\n")
    except Exception as error:
        fault = as_fault(error)
        tell_failure(verb, error, fault.code)
        yield _dumped(body_of(fault)) + b"\n"


def _json(body: Any, status: int, headers: Mapping[str, str]) -> Response:
    content = _dumped(body)
    whole = content if len(content) <= PIECE_BYTES else _pieces(content)
    return Response(whole, status, headers=dict(headers), content_type=JSON_TYPE)


def _pieces(content: bytes) -> Iterator[bytes]:
    return (content[start : start + PIECE_BYTES] for start in range(0, len(content), PIECE_BYTES))


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
