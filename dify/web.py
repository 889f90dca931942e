"""The HTTP side: who may ask, what is asked, and the answer as JSON. No failure leaves as anything else."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from werkzeug import Request, Response

from dify.failures import body_of, headers_of, status_of
from dify.routes import ROUTES, Call, Result
from dify.web_errors import (
    BodyTooLarge,
    ExportInvalid,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
)
from memory.errors import InternalError, MemoryFault
from tickets.errors import TicketFormatError

if TYPE_CHECKING:
    from dify_plugin.core.runtime import Session

MAX_BODY_BYTES = 10_485_760
"""At this length Dify's web server cuts a body in silence, so a body this long is not whole."""

JSON_TYPE = "application/json"
NDJSON_TYPE = "application/x-ndjson"


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
            lines = _encoded(result.lines)
            return Response(lines, result.status, content_type=NDJSON_TYPE)
        return _json(result.body, result.status, {})
    except (MemoryFault, TicketFormatError) as error:
        fault = as_fault(error)
    except Exception:  # whatever it is, its text may hold a customer's words
        fault = InternalError()
    return _json(body_of(fault), status_of(fault), headers_of(fault))


def as_fault(error: MemoryFault | TicketFormatError) -> MemoryFault:
    """A failure of the reader of exports as one of ours."""
    if isinstance(error, MemoryFault):
        return error
    if error.code == "body_too_large":
        return BodyTooLarge(limit=MAX_BODY_BYTES)
    return ExportInvalid(detail=error.code, where=f" at {error.path}" if error.path else "")


def _result(request: Request, settings: Mapping[str, Any], session: Session | None) -> Result:
    path = request.path.rstrip("/") or "/"
    methods = ROUTES.get(path)
    if methods is None:
        raise NotFound(what="path")
    handler = methods.get(request.method)
    if handler is None:
        raise MethodNotAllowed(allowed=", ".join(sorted(methods)))
    body = request.get_data()
    if len(body) >= MAX_BODY_BYTES:
        raise BodyTooLarge(limit=MAX_BODY_BYTES)
    call = Call(
        query=request.args.to_dict(),
        headers={name.casefold(): value for name, value in request.headers.items()},
        body=body,
        settings=settings,
        session=session,
    )
    return handler(call, is_authorized(call))


def is_authorized(call: Call) -> bool:
    """Whether the call has the endpoint's key; without any key it has not, with a wrong one it fails.

    Raises:
        Unauthorized: a key was sent and it is wrong.
    """
    sent = call.headers.get("authorization", "")
    scheme, _, key = sent.partition(" ")
    if scheme.casefold() != "bearer":
        key = call.headers.get("x-api-key", "")
    if not key and not sent:
        return False
    expected = str(call.settings.get("api_key") or "")
    matches = hmac.compare_digest(key.strip().encode(), expected.encode())
    if not expected or not matches:
        raise Unauthorized
    return True


def _encoded(lines: Iterator[Mapping[str, Any]]) -> Iterator[bytes]:
    """Lines of NDJSON; what goes wrong on the way becomes the last line."""
    try:
        for line in lines:
            yield _dumped(line) + b"\n"
    except (MemoryFault, TicketFormatError) as error:
        yield _dumped(body_of(as_fault(error))) + b"\n"
    except Exception:
        yield _dumped(body_of(InternalError())) + b"\n"


def _json(body: Any, status: int, headers: Mapping[str, str]) -> Response:
    return Response(_dumped(body), status, headers=dict(headers), content_type=JSON_TYPE)


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
