"""Writers and a merge at once, in many orders of their writes; and what a merge costs everybody else."""

import itertools
import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from development.chroma_server import ChromaServer
from memory.chroma import Chroma
from memory.engine import Engine
from memory.errors import CustomersSame, ErasureUnderWay, Forbidden, MergeConflict
from memory.forgetting import Phase, Reach, Request
from memory.identity import Caller
from memory.limits import Limits
from memory.recalling import Question
from memory.settings import ChromaSettings
from tests.memory.steps import (
    NEW,
    NOW,
    OLD,
    THIRD,
    VERBS,
    before_each_write,
    engine_on,
    known,
    merge,
    merge_id_of,
    remember,
    staged,
    ticket,
    whole,
)
from tests.memory.test_histories import Tiny

_processes = multiprocessing.get_context("forkserver")

TEXT = "Said meanwhile"


def link_later(engine: Engine) -> None:
    """Say something in a conversation of nobody's, and link it."""
    remember(engine, TEXT, "", "conv-later")
    engine.link(Caller.checked(OLD, "conv-later"))


WRITERS: dict[str, Callable[[Engine], object]] = {
    "remember": lambda engine: remember(engine, TEXT, OLD),
    "remember a value": lambda engine: remember(engine, TEXT, OLD, attribute="plan"),
    "remember in a conversation": lambda engine: remember(engine, TEXT, OLD, "conv-later"),
    "remember in an old conversation": lambda engine: remember(engine, TEXT, "", "conv-old"),
    "import": lambda engine: engine.import_tickets([ticket("3", OLD, TEXT)]),
    "link": link_later,
}


@pytest.fixture
def settings(chroma: ChromaServer) -> ChromaSettings:
    """A namespace with the two customers."""
    return staged(chroma.url)


def expect_all_with_the_new(settings: ChromaSettings) -> None:
    """What was written is the new customer's under both ids, and nothing is left of the old one's."""
    assert TEXT in known(settings, NEW)
    assert known(settings, OLD) == known(settings, NEW)
    owners = {
        dict(columns)["customer_id"]
        for name, rows in whole(settings).items()
        for _, _, columns, _ in rows
        if name != "aliases" and "is_signpost" not in dict(columns) and "customer_id" in dict(columns)
    }
    assert owners == {NEW}
    entries = [row for row in whole(settings)["ledger"] if dict(row[2]).get("ticket_id") == "3"]
    rows = {row_id for name, lying in whole(settings).items() if name.startswith("m") for row_id, *_ in lying}
    for _, text, _, _ in entries:
        assert [part.strip(' "') in rows for part in text.strip("[]").split(",")] == [True]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("at_write", [1, 2, 3, 4])
def test_a_write_that_a_merge_overtakes_ends_with_the_new_customer(
    settings: ChromaSettings, writer: str, at_write: int
) -> None:
    """The whole merge happens just before one of the writer's writes."""
    engine = engine_on(settings)

    def overtake(number: int) -> None:
        if number == at_write:
            merge(settings)

    before_each_write(engine, overtake)
    WRITERS[writer](engine)
    merge(settings)  # where the writer has fewer writes
    expect_all_with_the_new(settings)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("at_write", [4, 5, 7, 10, 13])
def test_a_write_in_the_middle_of_a_merge_ends_with_the_new_customer(
    settings: ChromaSettings, writer: str, at_write: int
) -> None:
    """The whole write happens just before one of the merge's writes."""
    engine = engine_on(settings)

    def interrupt(number: int) -> None:
        if number == at_write:
            WRITERS[writer](engine_on(settings))

    before_each_write(engine, interrupt)
    engine.administration.merge(OLD, NEW)
    expect_all_with_the_new(settings)


@pytest.mark.parametrize("at_write", [1, 2, 3, 4, 5])
def test_two_merges_against_each_other_make_no_ring(settings: ChromaSettings, at_write: int) -> None:
    """One is refused, or both are; what is known stays known to one customer or the other."""
    engine = engine_on(settings)
    everything = known(settings, OLD).keys() | known(settings, NEW).keys()

    def cross(number: int) -> None:
        if number == at_write:
            with suppress(MergeConflict, CustomersSame):
                engine_on(settings).administration.merge(NEW, OLD)

    before_each_write(engine, cross)
    with suppress(MergeConflict, CustomersSame):
        engine.administration.merge(OLD, NEW)
    assert known(settings, OLD).keys() | known(settings, NEW).keys() == everything


def test_a_merge_while_its_target_is_merged_away_leads_to_the_last(settings: ChromaSettings) -> None:
    """A into B, and in the middle of it B into C: all three are one."""
    for at_write in range(4, 14, 3):
        old = f"old-{at_write}"
        target, last = f"target-{at_write}", f"last-{at_write}"
        for customer_id in (old, target, last):
            remember(engine_on(settings), f"Of {customer_id}", customer_id)
        engine = engine_on(settings)

        def interrupt(number: int, at_write: int = at_write, target: str = target, last: str = last) -> None:
            if number == at_write:
                engine_on(settings).administration.merge(target, last)

        before_each_write(engine, interrupt)
        engine.administration.merge(old, target)
        if at_write > 10:  # fewer writes than that
            engine_on(settings).administration.merge(target, last)
        shown = {f"Of {customer_id}"[:20]: True for customer_id in (old, target, last)}
        assert [known(settings, customer_id) for customer_id in (old, target, last)] == [shown] * 3


def requests_of(settings: ChromaSettings, call: Callable[[Engine], object]) -> int:
    """How many requests a call makes to Chroma."""
    engine = engine_on(settings)
    chroma: Chroma = engine._namespace.chroma
    run, count = chroma._run, itertools.count()

    def counted(work: Callable[[], object]) -> object:
        next(count)
        return run(work)

    chroma._run = counted  # type: ignore[method-assign]
    call(engine)
    return next(count)


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_recall_asks_nothing_more_for_a_customer_who_was_not_merged(
    settings: ChromaSettings, is_merged: bool
) -> None:
    """Whether there were merges in the namespace or not: one request to read, one to search."""
    remember(engine_on(settings), "Owns a bicycle", THIRD, "conv-third")
    if is_merged:
        merge(settings)
    by_customer = Caller.checked(THIRD)
    by_conversation = Caller.checked("", "conv-third")
    assert requests_of(settings, lambda engine: engine.recall(by_customer, Question(query="bicycle"))) == 2
    assert requests_of(settings, lambda engine: engine.recall(by_customer, Question())) == 1
    assert (
        requests_of(settings, lambda engine: engine.recall(by_conversation, Question(query="bicycle"))) == 2
    )


def elsewhere(settings: ChromaSettings, verb: str) -> None:
    """Run a verb in another process, which does not tell this one."""
    process = _processes.Process(target=VERBS[verb], args=(settings,))
    process.start()
    process.join(120)
    assert process.exitcode == 0


def test_rows_known_from_before_are_not_shown_after_a_merge_elsewhere(settings: ChromaSettings) -> None:
    """Asked for either id again and again, while another process merges them and undoes it."""

    def shown() -> list[set[str]]:
        found = []
        for customer_id in (OLD, NEW):
            question = Question(query="bicycle", limit=100)
            hits = engine_on(settings).recall(Caller.checked(customer_id), question).hits
            found.append({hit.memory.text[:20] for hit in hits})
        return found

    before = shown()
    assert shown() == before
    assert before[0] != before[1]
    elsewhere(settings, "merge")
    merged = shown()
    assert shown() == merged
    assert merged[0] == merged[1] == before[0] | before[1] - {"Plan is Trial"}
    elsewhere(settings, "undo")
    assert shown() == before
    assert shown() == before


def test_erasing_a_merged_customer_leaves_nobody_answering_for_the_old_id(settings: ChromaSettings) -> None:
    """Rows, aliases and notes are gone, the receipt counts them, and a write that was under way goes too."""
    late = engine_on(settings, now=NOW + 1.0)
    merge(settings)

    def erase(number: int) -> None:
        if number == 1:
            request = Request(reach=Reach.EVERYTHING, phase=Phase.DELETE)
            receipt = engine_on(settings).forget(Caller.checked(OLD), request).receipt
            assert receipt is not None
            assert receipt.counts["aliases"] == 1

    before_each_write(late, erase)
    with suppress(ErasureUnderWay):
        remember(late, TEXT, OLD)
    assert whole(settings)["aliases"] == []
    assert known(settings, OLD) == known(settings, NEW) == {}
    remember(engine_on(settings, now=NOW + 2.0), "Said anew", OLD)
    assert known(settings, OLD) == {"Said anew": True}
    assert known(settings, NEW) == {}


class Died(BaseException):
    """The process is gone at this point."""


@pytest.mark.parametrize("at_write", [5, 8, 11, 14])
def test_a_backup_in_the_middle_of_a_merge_ends_merged_where_it_is_loaded(
    settings: ChromaSettings, at_write: int
) -> None:
    """In a namespace with other shards; there it can be undone, too."""
    before = [known(settings, customer_id) for customer_id in (OLD, NEW)]
    engine = engine_on(settings)

    def stop(number: int) -> None:
        if number == at_write:
            raise Died

    before_each_write(engine, stop)
    with suppress(Died):
        engine.administration.merge(OLD, NEW)
    lines = [line for page in engine_on(settings).administration.back_up("") for line in page]
    elsewhere = replace(settings, namespace=f"{settings.namespace}b", shards=5)
    load = engine_on(elsewhere).administration.restore(lines)
    assert list(load.steps())
    assert load.left_out == 0

    together = known(elsewhere, NEW)
    assert together == known(elsewhere, OLD)
    assert before[0].keys() | before[1].keys() == together.keys()
    engine_on(elsewhere, now=NOW + 1.0).administration.undo_merge(merge_id_of(elsewhere))
    assert [known(elsewhere, customer_id) for customer_id in (OLD, NEW)] == before


def test_a_limited_call_does_not_reach_a_customer_through_a_merge(settings: ChromaSettings) -> None:
    """The old id is within its limits, and the customer who answers for it is not."""
    merge(settings)
    limited = Engine(settings, Tiny(), limits=Limits(customer_prefix="crm/"), clock=lambda: NOW)
    before = whole(settings)
    caller = Caller.checked(OLD)
    with pytest.raises(Forbidden):
        limited.recall(caller, Question())
    with pytest.raises(Forbidden):
        remember(limited, TEXT, OLD)
    with pytest.raises(Forbidden):
        limited.administration.find_links(caller)
    (result,) = limited.import_tickets([ticket("9", OLD, TEXT)]).results
    assert result.code == Forbidden.code
    assert whole(settings) == before


def test_what_was_forgotten_under_the_old_id_is_not_imported_after_the_merge(
    settings: ChromaSettings,
) -> None:
    """A message of the old customer's ticket, forgotten before, told again by another ticket of theirs."""
    engine = engine_on(settings)
    hits = engine.recall(Caller.checked(OLD), Question(query="lamp", limit=100)).hits
    lamp = next(hit.memory.memory_id for hit in hits if "lamp" in hit.memory.text)
    engine.forget(Caller.checked(OLD), Request(reach=Reach.MATCHING, phase=Phase.DELETE, memory_ids=(lamp,)))
    merge(settings)
    engine_on(settings).import_tickets([ticket("7", OLD, "The lamp is broken")])
    assert not any("lamp" in text for text in known(settings, NEW))
