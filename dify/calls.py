"""One request to the endpoints, and its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dify.auditing import Deed
from dify.keys import Key
from dify.opening import Selected, open_engine
from dify.parameters import Parameters
from dify.settings import selected_model
from dify.web_errors import BodyInvalid
from memory.engine import Engine
from memory.limits import UNLIMITED

if TYPE_CHECKING:
    from dify_plugin.core.runtime import Session


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        query: first value of each query parameter.
        headers: names in lower case.
        body: as it came.
        settings: the endpoint's settings.
        session: the way back into Dify.
        key: whose key it carries; None for none.
        deed: what the audit is told of it.
    """

    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    settings: Mapping[str, Any] = field(repr=False)
    session: Session | None = field(repr=False)
    key: Key | None
    deed: Deed = field(repr=False)

    def engine(self) -> Engine:
        """An engine for this call, within the limits of its key."""
        selected = Selected(
            selected_model(self.settings, "embedding_model"), selected_model(self.settings, "llm")
        )
        limits = self.key.limits if self.key else UNLIMITED
        return open_engine(self.settings, selected, self.session, limits)

    @property
    def wants_lines(self) -> bool:
        """Whether the caller reads an answer line by line."""
        return "application/x-ndjson" in self.headers.get("accept", "")

    def fields(self) -> Parameters:
        """The body as a JSON object.

        Raises:
            BodyInvalid: it is none.
        """
        try:
            value = json.loads(self.body or b"{}")
        except (ValueError, RecursionError):
            raise BodyInvalid from None
        if not isinstance(value, dict):
            raise BodyInvalid
        self.deed.asked = value
        return Parameters(value)


@dataclass(frozen=True, slots=True)
class Result:
    """The answer: a JSON body, or lines that are sent as they come, or a text and its media type; and headers
    beside the body.
    """

    body: Any = None
    status: int = 200
    lines: Iterator[Mapping[str, Any] | bytes] | None = None
    text: tuple[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
