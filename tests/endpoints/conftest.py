"""The endpoint group as other systems use it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from development.daemon import HttpAnswer, PluginProcess
from tests.conftest import Json

KEY = "an-api-key"
SECRET = "a-webhook-secret"


@dataclass
class Api:
    """Sends requests to the endpoints of one plugin process, with the key unless told otherwise."""

    process: PluginProcess
    settings: Json

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        key: str | None = KEY,
    ) -> HttpAnswer:
        """Send a request; a body that is no bytes is sent as JSON."""
        sent = dict(headers or {})
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.process.endpoint(method, path, settings=self.settings, body=content, headers=sent)

    def post(self, path: str, body: Any, **options: Any) -> Any:
        """Send a POST that has to succeed, and give its JSON."""
        answer = self.send("POST", path, body, **options)
        assert answer.status == 200, answer.body
        return answer.json()

    def get(self, path: str) -> Any:
        """Send a GET that has to succeed, and give its JSON."""
        answer = self.send("GET", path)
        assert answer.status == 200, answer.body
        return answer.json()

    def error(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, str]:
        """Send a request that has to fail, and give status and code."""
        answer = self.send(method, path, body, **options)
        return answer.status, answer.json()["error"]["code"]

    def texts(self, customer_id: str) -> list[str]:
        """All that is known of a customer, oldest event first."""
        found: list[Json] = []
        cursor = ""
        while True:
            page = self.get(f"/memories?customer_id={customer_id}&limit=100&cursor={cursor}")
            found += page["memories"]
            cursor = page["cursor"] or ""
            if not cursor:
                return [m["text"] for m in sorted(found, key=lambda m: (m["occurred_at"], m["text"]))]


@pytest.fixture
def settings(credentials: Json) -> Json:
    """The endpoint's settings for a fresh namespace."""
    return {**credentials, "api_key": KEY, "webhook_secret": SECRET}


@pytest.fixture
def api(plugin: PluginProcess, settings: Json) -> Api:
    """The endpoints on a fresh namespace."""
    return Api(plugin, settings)


def message(number: int, text: str, *, role: str = "customer", **more: Any) -> Json:
    """A canonical message of day `number` of March 2024."""
    return {
        "message_id": str(number),
        "role": role,
        "created_at": f"2024-03-{number:02}T10:00:00Z",
        "text": text,
        **more,
    }


def ticket(ticket_id: str, customer_id: str | None, *messages: Json, **more: Any) -> Json:
    """A canonical ticket."""
    return {
        "source": "shop",
        "ticket_id": ticket_id,
        "customer_id": customer_id,
        "subject": "A question",
        "messages": list(messages),
        **more,
    }


def peak_bytes(pid: int, *, anew: bool = False) -> int:
    """The most memory a process has had at a time; measured from now on if `anew`."""
    if anew:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    (line,) = [
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1024
