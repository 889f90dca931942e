"""Erasures as the store knows them: a row among the customer's own, written before anything is deleted.

Every row of a memory carries the epoch its writer had seen. The row of an erasure of everything names a newer
one: from then on older rows are erased rows, whenever they arrive, and no read returns them. As the row lies
in the customer's own scope, it comes with the rows that a call reads anyway. It goes a day later, when no
writer of an older epoch can be left; until then it holds no more than hashes.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from memory.chroma_rows import Row
from memory.records import Columns, Kind
from memory.scope import Scope, hashed

KEPT_SECONDS = 86_400.0
"""How long the row of a finished erasure stays: far longer than any call lasts."""
WHOLE = "everything"
"""The reach of a task that is about a customer as a whole."""
TICKET = "ticket"
"""The reach of a task that is about one imported ticket."""
PROCESS = uuid.uuid4().hex
"""This process: of its own erasures it knows whether they are under way; another's are finished for it."""


class Stage(StrEnum):
    """How far an erasure is."""

    ERASING = "erasing"
    """Something may still be there, and the row says what is to go."""
    FLUSHING = "flushing"
    """Everything is gone and read back; log and receipt are left to do. Erasures of a part have none such."""
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What an erasure takes away, as it is noted.

    Attributes:
        reach: the word for it in the receipt: a `Reach`, or "ticket".
        conversation_id, case_id, source, ticket_id: which one; "" where it does not matter.
        memory_ids: which memories; empty where it does not matter.
        before: only what was so before, seconds since 1970; None for no bound.
        kinds: only these; empty for all.
    """

    reach: str
    conversation_id: str = ""
    case_id: str = ""
    source: str = ""
    ticket_id: str = ""
    memory_ids: tuple[str, ...] = ()
    before: float | None = None
    kinds: frozenset[Kind] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether everything of the customer goes."""
        return self.reach == WHOLE and self.before is None and not self.kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """One erasure.

    Attributes:
        token: its name, which becomes the receipt's.
        scope_key: of the scope it is in.
        customer_hash: whom it is about, as the receipt says it; "" for nobody.
        epoch: rows of an older one are erased; 0 for an erasure of a part, which has none.
        stage: see there.
        process: who does it.
        requested_at: seconds since 1970.
        task: what goes; None once it is gone.
        counts: what was there when it began, by type.
        customer_id, conversation_id: of the scope, until all is gone.
        shards: collections of memories whose files may hold some of it.
    """

    token: str
    scope_key: str
    customer_hash: str = ""
    epoch: int = 0
    stage: Stage = Stage.ERASING
    process: str = PROCESS
    requested_at: float
    task: Task
    counts: Mapping[str, int] = field(default_factory=dict)
    customer_id: str = ""
    conversation_id: str = ""
    shards: tuple[int, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether everything of the customer goes."""
        return self.epoch > 0

    @property
    def row_id(self) -> str:
        """The id of its row."""
        parts = [self.scope_key] if self.is_whole else [self.scope_key, self.token]
        return hashed("erasure", *parts)

    def without_ids(self, stage: Stage) -> "Erasure":
        """It at a later stage, when nobody is to be named any more."""
        task = Task(reach=self.task.reach, before=self.task.before, kinds=self.task.kinds)
        return replace(self, stage=stage, task=task, customer_id="", conversation_id="")


def erasure_row_id(scope: Scope) -> str:
    """The id of the row that says which epoch a scope is in."""
    return hashed("erasure", scope.key)


def to_row(erasure: Erasure, vector: list[float]) -> Row:
    """An erasure as a row of its scope, found wherever the scope's live or expiring rows are read."""
    task = erasure.task
    document = {
        "task": {
            "reach": task.reach,
            "conversation_id": task.conversation_id,
            "case_id": task.case_id,
            "source": task.source,
            "ticket_id": task.ticket_id,
            "memory_ids": list(task.memory_ids),
            "before": task.before,
            "kinds": sorted(task.kinds),
        },
        "counts": dict(erasure.counts),
        "shards": list(erasure.shards),
    }
    columns: Columns = {
        "erasure": erasure.token,
        "scope": erasure.scope_key,
        "expiring": erasure.scope_key,
        "customer_hash": erasure.customer_hash or None,
        "epoch": erasure.epoch,
        "stage": str(erasure.stage),
        "process": erasure.process,
        "requested_at": float(erasure.requested_at),
        "customer_id": erasure.customer_id or None,
        "conversation_id": erasure.conversation_id or None,
    }
    return Row(erasure.row_id, json.dumps(document), columns, vector)


def from_row(row: Row) -> Erasure | None:
    """The erasure a row tells of; None for any other row."""
    columns: dict[str, Any] = row.columns
    if "erasure" not in columns:
        return None
    document = json.loads(row.text)
    task = document["task"]
    return Erasure(
        token=str(columns["erasure"]),
        scope_key=str(columns["scope"]),
        customer_hash=str(columns.get("customer_hash", "")),
        epoch=int(columns["epoch"]),
        stage=Stage(str(columns["stage"])),
        process=str(columns["process"]),
        requested_at=float(columns["requested_at"]),
        task=Task(
            **task
            | {
                "memory_ids": tuple(task["memory_ids"]),
                "kinds": frozenset(Kind(kind) for kind in task["kinds"]),
            }
        ),
        counts=document["counts"],
        customer_id=str(columns.get("customer_id", "")),
        conversation_id=str(columns.get("conversation_id", "")),
        shards=tuple(document["shards"]),
    )
