"""The HTTP endpoints; `dify.routes` says which there are."""

from collections.abc import Mapping
from typing import Any

from dify_plugin import Endpoint
from werkzeug import Request, Response

from dify.web import respond


class ApiEndpoint(Endpoint):
    """Passes every request on to `dify.web.respond`."""

    def _invoke(self, r: Request, values: Mapping[str, Any], settings: Mapping[str, Any]) -> Response:
        return respond(r, settings, self.session)
