"""Moving the memories of a namespace to another number of collections or another embedder, while it is used.

    copy      every row goes into a new set of collections; what is written meanwhile is noted by its writers
    compare   every row is read again on both sides
    close     no write of a memory succeeds; what was noted is copied, and all ids are compared
    switch    one write: the new layout counts; it stays closed until every process has noticed
    clean     writes are open again; the old collections are deleted

Reads go to the old collections until the switch and to the new ones after it. What lies beside the memories
(links, tickets, receipts, tombstones, aliases, the audit) has no part in a layout and stays where it is.
How far it is stands in what the namespace remembers of itself, so that a run that was cut goes on.
"""

import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from memory.about import FRESH_SECONDS, About, Layout, Move, Stage
from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.clock import Deadline
from memory.embedding import Embedder, EmbedderChoice, EmbedderIdentity
from memory.embedding.noise import PROBES, noise_of
from memory.errors import MemoryFault, MoveConflict, MoveUnverified
from memory.namespace import Namespace
from memory.rows import Unowned, is_same, shard_of_row, vectors_of
from memory.settings import ChromaSettings

PAGE_ROWS = 250
"""Rows copied at a time; with long vectors a few megabytes."""
NOTICE_SECONDS = 2.5 * FRESH_SECONDS
"""After which every process has noticed what the namespace says of itself."""
FEW = 200
"""Noted rows that are not worth another turn before writes are closed."""
MOST_TURNS = 10
TRIES = 5
"""Comparisons of all ids; a late write that was not acknowledged may spoil one."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a move is: rows done of those there are, in a step of it."""

    step: str
    done: int
    total: int


class Resharding:
    """A change of the layout of one namespace, by one process.

    Args:
        settings: server and namespace.
        embedders: opens the new model.
        pause: waits for so many seconds.

    Attributes:
        written: rows written into new collections by this run.
    """

    def __init__(
        self,
        settings: ChromaSettings,
        embedders: EmbedderChoice,
        *,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._namespace = Namespace(Chroma(settings, Deadline.after(settings.timeout_seconds)), settings)
        # Not the namespace's own: collections of a layout that does not count yet are none of its.
        self._chroma = Chroma(settings, Deadline.after(settings.timeout_seconds))
        self._embedders = embedders
        self._pause = pause
        self._run = secrets.token_hex(8)
        self._embedder: Embedder | None = None
        self.written = 0

    # --- what an operator asks for ---------------------------------------------------------------

    def move(
        self, *, shards: int | None, embedder: EmbedderIdentity | None, keeps_old: bool = False
    ) -> Iterator[Progress]:
        """Move to another layout, or go on with that; it can be left and begun again at any point.

        Args:
            shards: collections, 1 to 1,024; None for as many as there are.
            embedder: the new model; None for the present one.
            keeps_old: whether the old collections stay; see `drop_kept`.

        Raises:
            MoveConflict: there is nothing to move, or another move is under way.
            MoveUnverified: copies differ; the old layout counts on.
            SetupError, ServiceError: it can be gone on with.
        """
        about = self._begin(shards, embedder)
        if about is None:
            return
        if self._now.stage is Stage.COPYING:
            yield from self._pass("copy", self._now.done, is_noted=True)
            yield from self._pass("compare", 0)
            yield from self._catch_up()
        if self._now.stage in {Stage.COPYING, Stage.CLOSED}:
            yield from self._close()
        if self._now.stage is Stage.SWITCHED:
            self._pause(NOTICE_SECONDS)
            self._note(stage=Stage.CLEANING)
        yield from self._clean(keeps_old=keeps_old)

    def abandon(self) -> bool:
        """Give up a move that is not switched yet; False if there is none.

        Raises:
            MoveConflict: it is switched; it can only be finished.
        """
        about = self._namespace.look()
        if about is None or about.move is None:
            return False
        if about.move.stage in {Stage.SWITCHED, Stage.CLEANING}:
            raise MoveConflict(reason="it is switched already, so finish it by the command that began it")
        self._take_over(about, replace(about.move, stage=Stage.ABANDONING))
        self._drop(about.move.target.generation, about.move.target.shards)
        self._chroma.drop(self._namespace.changes)
        self._namespace.state(replace(self._about, move=None))
        return True

    def drop_kept(self) -> int:
        """Delete the collections of earlier layouts that were kept; how many layouts that were."""
        about = self._namespace.look()
        if about is None:
            return 0
        if about.move is not None:
            raise MoveConflict(reason="a move is under way")
        for generation, shards in about.kept:
            self._drop(generation, shards)
        self._namespace.state(replace(about, kept=()))
        return len(about.kept)

    # --- beginning -------------------------------------------------------------------------------

    def _begin(self, shards: int | None, embedder: EmbedderIdentity | None) -> About | None:
        """Begin a move or take over one that was cut; None where the layout is the wanted one already."""
        about = self._namespace.look()
        if about is None:
            raise MoveConflict(reason="nothing was ever remembered in this namespace")
        if about.mending:
            raise MoveConflict(reason="one of its collections is being mended")
        move = about.move
        goal = move.target if move else about.layout
        wanted = (shards or goal.shards, embedder or goal.embedder)
        if move is None:
            if wanted == (about.shards, about.embedder):
                return None
            self._chroma.drop(self._namespace.changes)
            target = self._target(about, *wanted)
            move = Move(origin=about.layout, target=target, stage=Stage.COPYING, run=self._run)
        elif move.stage is Stage.ABANDONING:
            raise MoveConflict(reason="a move is being given up; finish that first")
        elif wanted != (goal.shards, goal.embedder):
            under_way = f"a move to {goal.shards} collections with {goal.embedder} is under way"
            raise MoveConflict(reason=f"{under_way}; finish it or give it up first")
        if move.target.embedder != move.origin.embedder:
            self._embedder = self._embedders.open(move.target.embedder)
        return self._take_over(about, move)

    def _target(self, about: About, shards: int, embedder: EmbedderIdentity) -> Layout:
        dimension, noise = about.dimension, about.noise
        if embedder != about.embedder:
            probes = self._embedders.open(embedder).embed_documents(PROBES)
            dimension, noise = len(probes[0]), noise_of(probes)
        return Layout(embedder, dimension, shards, noise, about.generation + 1)

    def _take_over(self, about: About, move: Move) -> About:
        self._about = replace(about, move=replace(move, run=self._run))
        self._namespace.state(self._about)
        return self._about

    @property
    def _now(self) -> Move:
        """The move, as this run wrote it last."""
        if self._about.move is None:
            raise MoveConflict(reason="no move is under way")
        return self._about.move

    def _hold(self) -> None:
        """Make sure that no other run is at it; the time limit starts anew.

        Raises:
            MoveConflict: another run has taken over.
        """
        for chroma in (self._chroma, self._namespace.chroma):
            chroma.renew()
        about = self._namespace.look()
        if about is None or about.move is None or about.move.run != self._run:
            raise MoveConflict(reason="another run has taken over")

    def _note(self, *, stage: Stage | None = None, turn: int | None = None, done: int | None = None) -> None:
        """Write how far it is."""
        self._hold()
        now = self._now
        moved = replace(
            now,
            stage=stage or now.stage,
            turn=now.turn if turn is None else turn,
            done=now.done if done is None else done,
        )
        is_switch = stage is Stage.SWITCHED
        about = self._about.in_layout(now.target) if is_switch else self._about
        self._about = replace(about, move=moved)
        self._namespace.state(self._about)

    # --- copying ---------------------------------------------------------------------------------

    def _pass(self, step: str, first: int, *, is_noted: bool = False) -> Iterator[Progress]:
        """Go through the old collections from one on, and make the new ones like them."""
        names = self._old()
        counts = [self._chroma.count(name) for name in names]
        done, total = sum(counts[:first]), sum(counts)
        for number in range(first, len(names)):
            for page in _pages(self._chroma.ids(names[number])):
                self._hold()
                self._reconcile(names[number], page)
                done += len(page)
                yield Progress(step, done, max(total, done))
            if is_noted:
                self._note(done=number + 1)

    def _catch_up(self) -> Iterator[Progress]:
        """Copy what was noted, in turns that get shorter."""
        wanted: int | None = None  # whatever an earlier run left, too
        for _ in range(MOST_TURNS):
            turn = self._now.turn
            self._note(turn=turn + 1)
            handled = yield from self._apply_noted(wanted)
            if handled <= FEW:
                return
            wanted = turn + 1

    def _apply_noted(self, turn: int | None) -> Generator[Progress, None, int]:
        """Copy what was noted in a turn, None for all; the generator's result is how many rows that were."""
        changes = self._namespace.changes
        ids = self._chroma.ids(changes, where=None if turn is None else {"turn": str(turn)})
        done = 0
        for page in _pages(ids):
            self._hold()
            by_collection: dict[str, list[str]] = {}
            for row in self._chroma.get(changes, ids=page):
                by_collection.setdefault(str(row.columns["collection"]), []).append(row.row_id)
            for collection, noted in by_collection.items():
                self._reconcile(collection, noted)
            done += len(page)
            yield Progress("catch up", done, len(ids))
        return len(ids)

    def _reconcile(self, collection: str, ids: Sequence[str]) -> None:
        """Make the copies of some rows like the rows; a row that is gone has none."""
        names = self._old()
        if collection not in names:
            return  # noted by a writer of an even older layout, whose write was refused
        old_shard = names.index(collection)
        rows = {row.row_id: row for row in self._chroma.get(collection, ids=ids)}
        gone = [row_id for row_id in ids if row_id not in rows]
        placed: dict[str, dict[str, Row]] = {}
        for row in rows.values():
            try:
                shard = shard_of_row(row, self._now.target.shards, old_shard)
            except Unowned:
                gone.append(row.row_id)
            else:
                placed.setdefault(self._new()[shard], {})[row.row_id] = row
        for name, wanted in placed.items():
            there = {row.row_id: row for row in self._chroma.get(name, ids=list(wanted))}
            stale = [row for row in wanted.values() if not is_same(row, there.get(row.row_id))]
            self._write(collection, name, stale, there)
        self._delete(gone)

    def _write(self, collection: str, name: str, rows: Sequence[Row], there: dict[str, Row]) -> None:
        """Copy rows and read them back."""
        if not rows:
            return
        if self._embedder is None:
            rows = self._chroma.get(collection, ids=[row.row_id for row in rows], with_vectors=True)
        else:
            rows = vectors_of(rows, self._embedder, self._now.target.dimension)
        for chroma in (self._chroma, self._namespace.chroma):
            chroma.renew()  # embedding is not the server's time
        # An upsert leaves columns that the row does not have.
        columns = [dict.fromkeys(there[r.row_id].columns) if r.row_id in there else {} for r in rows]
        self._chroma.put(
            name, [replace(row, columns=old | row.columns) for row, old in zip(rows, columns, strict=True)]
        )
        back = {
            row.row_id: row for row in self._chroma.get(name, ids=[r.row_id for r in rows], with_vectors=True)
        }
        wrong = [row for row in rows if not is_same(row, back.get(row.row_id), with_vector=True)]
        if wrong:
            raise MoveUnverified(rows=len(wrong))
        self.written += len(rows)

    def _delete(self, ids: Sequence[str]) -> None:
        """Delete copies, wherever they lie: a row that is gone does not say whose it was."""
        for name in self._new() if ids else ():
            found = [row.row_id for row in self._chroma.get(name, ids=ids)]
            if found:
                self._chroma.delete(name, found)

    # --- switching -------------------------------------------------------------------------------

    def _close(self) -> Iterator[Progress]:
        """Close writes, copy what was noted last, compare, and switch; writes are opened if that fails."""
        is_resumed = self._now.stage is Stage.CLOSED
        turn = None if is_resumed else self._now.turn
        self._note(stage=Stage.CLOSED)
        try:
            self._pause(NOTICE_SECONDS)
            for _ in range(TRIES):
                yield from self._apply_noted(turn)
                different = self._compare_ids()
                if not different:
                    break
            else:
                raise MoveUnverified(rows=different)
        except BaseException:
            with suppress(MemoryFault):  # whatever it is, writes are not to stay closed for it
                self._note(stage=Stage.COPYING)
            raise
        self._note(stage=Stage.SWITCHED)

    def _compare_ids(self) -> int:
        """Compare the ids of both layouts and mend what differs; how many did."""
        self._hold()
        old = {row_id: name for name in self._old() for row_id in self._chroma.ids(name)}
        new = [(row_id, name) for name in self._new() for row_id in self._chroma.ids(name)]
        stray = [row_id for row_id, _ in new if row_id not in old]
        missing: dict[str, list[str]] = {}
        for row_id in old.keys() - {row_id for row_id, _ in new}:
            missing.setdefault(old[row_id], []).append(row_id)
        different = len(stray) + len(new) - len({row_id for row_id, _ in new})
        self._delete(stray)
        for name, ids in missing.items():
            for page in _pages(ids):
                self._hold()
                rows = self._chroma.get(name, ids=page)
                different += sum(1 for row in rows if not _is_nobodys(row))
                self._reconcile(name, page)
        return different

    def _clean(self, *, keeps_old: bool) -> Iterator[Progress]:
        origin = self._now.origin
        kept = self._about.kept
        if keeps_old:
            kept = (*kept, (origin.generation, origin.shards))
        else:
            self._hold()
            yield Progress("clean", 0, origin.shards)
            self._drop(origin.generation, origin.shards)
            yield Progress("clean", origin.shards, origin.shards)
        self._chroma.drop(self._namespace.changes)
        self._namespace.state(replace(self._about, move=None, kept=kept))

    def _drop(self, generation: int, shards: int) -> None:
        for shard in range(shards):
            self._chroma.renew()
            self._chroma.drop(self._namespace.memories(shard, generation))

    def _old(self) -> list[str]:
        return self._names(self._now.origin)

    def _new(self) -> list[str]:
        return self._names(self._now.target)

    def _names(self, layout: Layout) -> list[str]:
        return [self._namespace.memories(shard, layout.generation) for shard in range(layout.shards)]


def _is_nobodys(row: Row) -> bool:
    try:
        shard_of_row(row, 1, 0)
    except Unowned:
        return True
    return False


def _pages(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[start : start + PAGE_ROWS] for start in range(0, len(ids), PAGE_ROWS))
