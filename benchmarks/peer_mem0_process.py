"""mem0 behind lines of JSON, one a request on standard input and one an answer on standard output.

Runs in mem0's own environment: it imports nothing of ours. Nothing of it calls a language model or a service
other than the Chroma server and the embedding service it is given.
"""

import hashlib
import json
import os
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

from mem0 import Memory

type Json = dict[str, Any]

BATCH = 500


class Peer:
    """One collection of mem0.

    Args:
        chroma_port: of the server on this machine.
        collection: a name that nobody has used.
        embedding_url: base address of a service of OpenAI's protocol.
        embedding_model: a name it knows.
        history: path of mem0's own database.
    """

    def __init__(
        self, chroma_port: int, collection: str, embedding_url: str, embedding_model: str, history: str
    ) -> None:
        service = {"openai_base_url": embedding_url, "api_key": "none"}
        store = {"host": "127.0.0.1", "port": chroma_port, "collection_name": collection}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "chroma", "config": store},
                "embedder": {"provider": "openai", "config": {"model": embedding_model, **service}},
                "llm": {"provider": "openai", "config": service},
                "history_db_path": history,
            }
        )
        self._embedding_seconds = 0.0
        self._embed = self._memory.embedding_model.embed
        self._memory.embedding_model.embed = self._timed_embed

    def add(self, rows: list[Json]) -> Json:
        """Store messages of one scope and moment the way mem0's users do."""
        scope, at = rows[0]["scope"], rows[0]["at"]
        messages = [{"role": row["role"], "content": row["content"]} for row in rows]
        started, embedding = time.perf_counter(), self._embedding_seconds
        added = self._memory.add(messages, user_id=scope, metadata=_times(at), infer=False)
        return {
            "ids": [memory["id"] for memory in added["results"]],
            "seconds": time.perf_counter() - started,
            "embedding_seconds": self._embedding_seconds - embedding,
        }

    def write(self, rows: list[Json]) -> Json:
        """Store in batches the very records that `add` writes one at a time; without mem0's history."""
        ids = []
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            batch_ids = [str(uuid.uuid4()) for _ in batch]
            vectors = self._memory.embedding_model.embed_batch([row["content"] for row in batch])
            self._memory.vector_store.insert(
                vectors=vectors, payloads=[_payload(row) for row in batch], ids=batch_ids
            )
            ids += batch_ids
        return {"ids": ids}

    def search(
        self, scope: str, query: str, limit: int, since: float | None, until: float | None, is_usual: bool
    ) -> Json:
        """Search in one scope; without a threshold unless it is to be mem0's own."""
        bounds = {name: value for name, value in (("gte", since), ("lte", until)) if value is not None}
        filters = {"user_id": scope, **({"at": bounds} if bounds else {})}
        threshold = {} if is_usual else {"threshold": 0.0}
        started, embedding = time.perf_counter(), self._embedding_seconds
        found = self._memory.search(query, top_k=limit, filters=filters, **threshold)
        return {
            "ids": [memory["id"] for memory in found["results"]],
            "seconds": time.perf_counter() - started,
            "embedding_seconds": self._embedding_seconds - embedding,
        }

    def _timed_embed(self, text: str, memory_action: str | None = None) -> list[float]:
        started = time.perf_counter()
        vector: list[float] = self._embed(text, memory_action)
        self._embedding_seconds += time.perf_counter() - started
        return vector


def _times(at: float | None) -> Json:
    return {} if at is None else {"at": at}


def _payload(row: Json) -> Json:
    text, now = row["content"], datetime.now(UTC).isoformat()
    return {
        **_times(row["at"]),
        "user_id": row["scope"],
        "role": row["role"],
        "data": text,
        "hash": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
        "created_at": now,
        "updated_at": now,
        "text_lemmatized": text,
    }


def serve(answers: TextIO) -> None:
    """Answer requests, `{"do": name, …}`, until there are no more; the first opens the collection."""
    peer = Peer(**json.loads(sys.stdin.readline()))
    verbs: dict[str, Callable[..., Json]] = {"add": peer.add, "write": peer.write, "search": peer.search}
    for line in sys.stdin:
        request = json.loads(line)
        answer = verbs[request.pop("do")](**request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    # The library may print; only answers go where answers are read.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(lines)
