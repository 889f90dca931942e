"""A customer is erased, or part of one is forgotten, while it is merged into another."""

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from development.chroma_server import ChromaServer
from memory.engine import Engine
from memory.erasures import WHOLE, Task
from memory.errors import ErasureUnderWay, MergeConflict
from memory.forgetting import Phase, Reach, Request
from memory.identity import Caller, scope_of_customer
from memory.recalling import Question
from memory.receipts import Receipt
from memory.settings import ChromaSettings
from memory.signposts import looking
from memory.store import MemoryStore
from tests.memory.steps import (
    NEW,
    NOW,
    OLD,
    before_each_write,
    copy_namespace,
    engine_on,
    known,
    merge,
    merge_id_of,
    remember,
    staged,
    ticket,
    whole,
)

NEWS = {"Plan is Trial": True, "Likes teal": True, "Owns a bicycle": True, "The chair wobbles": True}
OLDS_ONLY = ("Plan is Basic", "Plan is Pro", "Long Long", "The lamp is broken")
WRITES_OF_A_MERGE = 13


class Died(BaseException):
    """The process is gone at this point."""


@pytest.fixture
def settings(chroma: ChromaServer) -> ChromaSettings:
    """A namespace with the two customers."""
    return staged(chroma.url)


def erase_who_he_was(settings: ChromaSettings) -> None:
    """Erase the old customer, by a call that made out whom it is about before there was a merge."""
    erase_of_who_he_was(settings, Task(reach=WHOLE))


def erase_of_who_he_was(settings: ChromaSettings, task: Task) -> Receipt:
    """Erase a part of the old customer, by such a call."""
    engine = engine_on(settings, now=NOW + 1.0)
    about = engine._namespace.about()
    assert about is not None
    scope = scope_of_customer(OLD)
    with looking(), engine._erasing.watched(MemoryStore(engine._namespace, about)) as store:
        return engine._erasing.erase(store, scope, task, requested_at=NOW + 1.0)


def expect_the_old_one_gone(settings: ChromaSettings) -> None:
    """Nothing of him is anywhere; the other has all that was the other's own."""
    assert known(settings, NEW) == NEWS
    assert known(settings, OLD) in ({}, NEWS)
    rows = [row for lying in whole(settings).values() for row in lying]
    assert [text for _, text, _, _ in rows if text.startswith(OLDS_ONLY)] == []
    assert "conv-old" not in str(rows)
    assert "The lamp" not in str(rows)
    links = engine_on(settings).administration.find_links(Caller.checked(NEW))
    assert {link.conversation_id for link in links} == {"conv-new", "shop:2"}
    entry = engine_on(settings).administration.find_import("shop", "1")
    assert entry is None


def merge_with(engine: Engine) -> None:
    """Merge, which may be refused since one of the two is erased."""
    with suppress(ErasureUnderWay, Died):
        engine.administration.merge(OLD, NEW)


@pytest.mark.parametrize("at_write", range(1, WRITES_OF_A_MERGE + 1))
def test_an_erasure_in_the_middle_of_a_merge_takes_what_was_moved(
    settings: ChromaSettings, at_write: int
) -> None:
    """The whole erasure happens just before one of the merge's writes."""
    engine = engine_on(settings)

    def interrupt(number: int) -> None:
        if number == at_write:
            erase_who_he_was(settings)

    before_each_write(engine, interrupt)
    merge_with(engine)
    expect_the_old_one_gone(settings)


@pytest.mark.parametrize("at_write", range(4, WRITES_OF_A_MERGE))
def test_a_merge_that_dies_after_the_erasure_leaves_nothing(settings: ChromaSettings, at_write: int) -> None:
    """The erasure happens before one of the merge's writes, and before the next but one it is over."""
    engine = engine_on(settings)

    def interrupt(number: int) -> None:
        if number == at_write:
            erase_who_he_was(settings)
        if number == at_write + 2:
            raise Died

    before_each_write(engine, interrupt)
    merge_with(engine)
    if at_write % 2:
        merge(settings)
        assert known(settings, OLD) == known(settings, NEW) == NEWS
    else:
        expect_the_old_one_gone(settings)
        assert whole(settings)["aliases"] == []


@pytest.mark.parametrize("at_write", range(2, 13))
def test_a_merge_in_the_middle_of_an_erasure_does_not_save_anything(
    settings: ChromaSettings, at_write: int
) -> None:
    """The whole merge happens just before one of the writes of an erasure, from its note in the store on."""
    eraser = engine_on(settings, now=NOW + 1.0)

    def interrupt(number: int) -> None:
        if number == at_write:
            merge_with(engine_on(settings))

    before_each_write(eraser, interrupt)
    request = Request(reach=Reach.EVERYTHING, phase=Phase.DELETE)
    eraser.forget(Caller.checked(OLD), request)
    expect_the_old_one_gone(settings)


@pytest.mark.parametrize("at_write", range(2, WRITES_OF_A_MERGE + 1))
def test_what_is_forgotten_in_the_middle_of_a_merge_does_not_arrive(
    settings: ChromaSettings, at_write: int
) -> None:
    """By a call that made out whom it is about before there was a merge, and that found it there."""
    ids = tuple(memory_id(settings, OLD, text) for text in ("The lamp is broken", "Plan is Basic"))
    engine = engine_on(settings)
    deleted: list[int] = []

    def interrupt(number: int) -> None:
        if number == at_write:
            task = Task(reach=Reach.MATCHING, memory_ids=ids)
            deleted.append(erase_of_who_he_was(settings, task).deleted)

    before_each_write(engine, interrupt)
    merge_with(engine)
    assert deleted in ([0], [2])
    texts = known(settings, NEW).keys()
    assert texts == known(settings, OLD).keys()
    assert ({"The lamp is broken", "Plan is Basic"} & texts == set()) == (deleted == [2])
    assert {*NEWS, "Plan is Pro"} <= texts


def memory_id(settings: ChromaSettings, customer_id: str, text: str) -> str:
    """The id of a memory."""
    question = Question(limit=100, include_superseded=True)
    hits = engine_on(settings).recall(Caller.checked(customer_id), question).hits
    return next(hit.memory.memory_id for hit in hits if hit.memory.text == text)


def cut_short(settings: ChromaSettings, act: Callable[[Engine], object], at_write: int) -> bool:
    """Whether a call died before that write; otherwise it ran through."""
    engine = engine_on(settings, now=NOW + 1.0)

    def stop(number: int) -> None:
        if number == at_write:
            raise Died

    before_each_write(engine, stop)
    try:
        act(engine)
    except Died:
        return True
    return False


def erase(engine: Engine) -> None:
    """Erase the old customer, or whoever answers for the old id."""
    engine.forget(Caller.checked(OLD), Request(reach=Reach.EVERYTHING, phase=Phase.DELETE))


def texts_of(settings: ChromaSettings) -> set[str]:
    """What the store holds, whoever's it is; long texts by their start."""
    rows = [row for name, lying in whole(settings).items() if name.startswith("m") for row in lying]
    return {text[:20] for _, text, columns, _ in rows if text and "erasure" not in dict(columns)}


@pytest.mark.parametrize("at_write", range(1, WRITES_OF_A_MERGE + 1))
def test_an_erasure_after_a_merge_that_was_cut_short(settings: ChromaSettings, at_write: int) -> None:
    """It takes both where the merge had begun, and only the one that was named where it had not."""
    everything = texts_of(settings)
    assert cut_short(settings, lambda engine: engine.administration.merge(OLD, NEW), at_write)
    erase(engine_on(settings, now=NOW + 2.0))
    left = texts_of(settings) - {"Drives a van", "Drives a bus"}
    assert left in (set(), set(NEWS))
    assert known(settings, OLD) == {}
    assert known(settings, NEW) == (NEWS if left else {})
    assert (at_write > 4) <= (left == set())
    assert everything > left


def test_an_erasure_of_a_merged_customer_that_is_cut_short(settings: ChromaSettings) -> None:
    """Before any of its writes: the next call, by one id or the other, finds all of both, or finishes it."""
    merge(settings)
    everything = known(settings, NEW)
    outcomes = []
    for at_write in itertools.count(1):
        copy = replace(settings, namespace=f"{settings.namespace}{at_write}")
        copy_namespace(settings, copy)
        if not cut_short(copy, erase, at_write):
            break
        shown = known(copy, (OLD, NEW)[at_write % 2])
        assert shown in (everything, {})
        outcomes.append(shown == {})
        if not shown:
            assert (known(copy, OLD), known(copy, NEW)) == ({}, {})
            assert texts_of(copy) == {"Drives a van", "Drives a bus"}
            assert whole(copy)["aliases"] == []
    assert outcomes == sorted(outcomes)
    assert outcomes.count(True) > 10


def test_what_was_forgotten_of_a_merged_customer_stays_out_after_an_undo(settings: ChromaSettings) -> None:
    """Neither id can have it imported again."""
    merge(settings)
    lamp = memory_id(settings, NEW, "The lamp is broken")
    request = Request(reach=Reach.MATCHING, phase=Phase.DELETE, memory_ids=(lamp,))
    engine_on(settings, now=NOW + 1.0).forget(Caller.checked(NEW), request)
    engine_on(settings, now=NOW + 2.0).administration.undo_merge(merge_id_of(settings))

    again = [ticket("7", OLD, "The lamp is broken"), ticket("8", NEW, "The lamp is broken")]
    engine_on(settings, now=NOW + 3.0).import_tickets(again)
    assert not any("lamp" in text for customer in (OLD, NEW) for text in known(settings, customer))


def test_a_merge_after_an_erasure_moves_what_is_new(settings: ChromaSettings) -> None:
    """An erasure that came before the merge is none of its business, whatever the clocks say."""
    request = Request(reach=Reach.EVERYTHING, phase=Phase.DELETE)
    engine_on(settings, now=NOW + 500.0).forget(Caller.checked(OLD), request)
    remember(engine_on(settings, now=NOW + 1.0), "Said anew", OLD)
    merge(settings)
    assert known(settings, OLD) == known(settings, NEW) == {**NEWS, "Said anew": True}
    with pytest.raises(MergeConflict):
        engine_on(settings).administration.merge(OLD, "somebody else")
