"""A real Chroma behind a gate that refuses what Chroma Cloud's published quotas do not allow."""

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.fake_servers import Answer, Asked, passed_on

RECORDS, DOCUMENT_BYTES, VALUE_BYTES, ID_BYTES = 300, 16_384, 4_096, 128
KEYS, KEY_BYTES, COLLECTION_NAME_BYTES, COLLECTION_VALUE_BYTES = 32, 36, 128, 256
CALLS = 10
"""Reads, and writes, at once in one collection."""

_CALL = re.compile(r".*/collections/([^/]+)/(add|upsert|update|delete|get|query)")
_COLLECTIONS = re.compile(r".*/collections")


class Gate:
    """Answers for `tests.fake_servers.serve`.

    Args:
        chroma_url: of the real server.

    Attributes:
        refused: why, for each request that was refused.
        passed: how many calls of each sort went through.
    """

    def __init__(self, chroma_url: str) -> None:
        self._chroma_url = chroma_url
        self._lock = threading.Lock()
        self._under_way: Counter[tuple[str, bool]] = Counter()
        self.refused: list[str] = []
        self.passed: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> Answer:
        """Chroma's answer, or the refusal."""
        call = _CALL.fullmatch(asked.path)
        reasons = list(_reasons(call[2], json.loads(asked.body))) if call else list(_creation(asked))
        if call is None:
            return self._refusal(reasons) if reasons else passed_on(self._chroma_url, asked)
        place = call[1], call[2] in {"get", "query"}
        with self._lock:
            self._under_way[place] += 1
            if self._under_way[place] > CALLS:
                reasons.append("calls at once")
        try:
            if reasons:
                return self._refusal(reasons)
            self.passed[call[2]] += 1
            return passed_on(self._chroma_url, asked)
        finally:
            with self._lock:
                self._under_way[place] -= 1

    def _refusal(self, reasons: list[str]) -> Answer:
        self.refused += reasons
        return Answer(422, json.dumps({"error": "QuotaError", "message": str(reasons)}).encode())


def _reasons(call: str, body: dict[str, Any]) -> Iterator[str]:
    """What is beyond the quotas in one call on a collection."""
    ids = body.get("ids") or []
    if call in {"get", "query"}:
        wanted = body.get("n_results") if call == "query" else body.get("limit") or len(ids)
        if not wanted or wanted > RECORDS:
            yield f"{call} of {wanted}"
        return
    if len(ids) > RECORDS:
        yield f"{call} of {len(ids)}"
    if any(len(row_id.encode()) > ID_BYTES for row_id in ids):
        yield "id"
    for document in body.get("documents") or []:
        if len((document or "").encode()) > DOCUMENT_BYTES:
            yield f"document of {len(document.encode())}"
    for metadata in body.get("metadatas") or []:
        yield from _of_metadata(metadata or {})


def _of_metadata(metadata: dict[str, Any]) -> Iterator[str]:
    if len(metadata) > KEYS:
        yield f"{len(metadata)} keys"
    for name, value in metadata.items():
        if len(name.encode()) > KEY_BYTES:
            yield f"key {name}"
        if len(str(value).encode()) > VALUE_BYTES:
            yield f"value of {len(str(value).encode())} in {name}"


def _creation(asked: Asked) -> Iterator[str]:
    """What is beyond the quotas where a collection is created."""
    if asked.method != "POST" or not _COLLECTIONS.fullmatch(asked.path):
        return
    body = json.loads(asked.body)
    if len(body["name"].encode()) > COLLECTION_NAME_BYTES:
        yield "name of a collection"
    values = (body.get("metadata") or {}).values()
    if len(values) > KEYS or any(len(str(value).encode()) > COLLECTION_VALUE_BYTES for value in values):
        yield "metadata of a collection"
