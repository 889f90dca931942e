"""Erasure that holds: whatever dies on the way, and whatever is written meanwhile."""

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable

import pytest

from development.chroma_server import ChromaServer
from development.places import PROJECT
from memory.chroma import Chroma
from memory.erasing import Erasing
from memory.erasures import KEPT_SECONDS
from memory.errors import ChromaFailed, ErasureUnderWay, SettingInvalid
from memory.forgetting import Phase, Reach, Request
from memory.identity import Caller, Identity
from memory.merging import Merging
from memory.policy import SECONDS_A_DAY, Policy
from memory.recalling import Question
from memory.receipts import Receipts, customer_hash
from memory.records import Kind, Memory, in_scope
from memory.scope import Scope, conversation_scope, customer_scope
from memory.store import MemoryStore, Stored
from memory.text import digest
from tests.endpoints.conftest import message, ticket
from tests.scenarios.engines import KEY, Place, tickets_of, vector_of

ADA, GRACE = "ada@example.com", "ada@example.com1"


@pytest.fixture
def place(chroma: ChromaServer) -> Place:
    """A fresh namespace."""
    return Place(chroma.url, f"e{uuid.uuid4().hex[:12]}")


def export(*customers: str) -> bytes:
    """One ticket of two messages a customer."""
    told = [ticket(f"t-{c}", c, message(1, f"One of {c}"), message(2, f"Two of {c}")) for c in customers]
    return json.dumps({"tickets": told}).encode()


def furnish(place: Place, customer_id: str) -> None:
    """A current value, its history, an event of a linked conversation, and a ticket."""
    place.remember(customer_id, "Is on Basic", attribute="plan")
    place.remember(customer_id, "Is on Pro", attribute="plan", conversation_id=f"conv-{customer_id}")
    place.remember(customer_id, "Likes teal", case_id="case-1", conversation_id=f"conv-{customer_id}")
    place.engine.import_tickets(tickets_of(export(customer_id)))


def texts_of(customer_id: str) -> list[str]:
    """What `furnish` leaves."""
    return sorted(
        ["Is on Basic", "Is on Pro", "Likes teal", f"One of {customer_id}", f"Two of {customer_id}"]
    )


def die(place: Place, verb: str, argument: str, deadly: int) -> bool:
    """Let a process do something and die before its n-th write; whether it died."""
    command = [sys.executable, "-m", "tests.scenarios.dying"]
    arguments = [place.settings.url, place.settings.namespace, verb, argument, str(deadly)]
    done = subprocess.run([*command, *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode in {0, -9}, done.stderr
    return done.returncode == -9


# --- the forget pattern -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reach", "given", "left"),
    [
        (Reach.EVERYTHING, {}, []),
        (Reach.CONVERSATION, {"conversation_id": f"conv-{ADA}"}, ["Is on Basic"]),
        (Reach.CASE, {"case_id": "case-1"}, ["Is on Basic", "Is on Pro"]),
    ],
)
def test_what_is_forgotten_is_gone_and_nothing_else(
    place: Place, reach: Reach, given: dict[str, str], left: list[str]
) -> None:
    """It was there; it is gone with its history; a neighbour of a similar name keeps all; again is fine."""
    furnish(place, ADA)
    furnish(place, GRACE)
    if reach is not Reach.EVERYTHING:
        left = sorted([*left, f"One of {ADA}", f"Two of {ADA}"])
    assert place.texts(ADA) == texts_of(ADA)

    receipt = place.erase(ADA, reach, **given).receipt

    assert receipt is not None
    assert receipt.deleted == 5 - len(left)
    assert place.texts(ADA) == left
    assert place.texts(GRACE) == texts_of(GRACE)
    again = place.erase(ADA, reach, **given).receipt
    assert again is not None
    assert again.deleted == 0


def test_what_is_said_anew_after_a_deletion_was_cut_short_at_its_end_stays(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows were gone and read back: the next call does the rest, and deletes nothing."""

    def broken(_chroma: Chroma, _collection: str, **_more: object) -> bool:
        raise ChromaFailed

    (known,) = (outcome.memory for outcome in place.remember(ADA, "Likes teal").outcomes)
    place.remember(ADA, "Likes plum")
    request = Request(reach=Reach.MATCHING, phase=Phase.DELETE, memory_ids=(known.memory_id,))
    with monkeypatch.context() as patched:
        patched.setattr(Chroma, "flush", broken)
        with pytest.raises(ChromaFailed):
            place.engine.forget(Caller.checked(ADA), request)
    notes = [row for row in place.rows(customer_scope(ADA)) if "erasure" in row.columns]
    assert len(notes) == 1

    assert place.remember(ADA, "Likes teal").outcomes[0].memory.memory_id == known.memory_id

    assert place.texts(ADA) == ["Likes plum", "Likes teal"]
    assert not [row for row in place.rows(customer_scope(ADA)) if "erasure" in row.columns]
    (receipt,) = place.engine.administration.find_receipts(None, limit=10, cursor="")[0]
    assert receipt.deleted == 1


def test_a_receipt_counts_and_names_nobody(place: Place) -> None:
    """Counts by type, a keyed hash, what it does not cover; neither a word nor an id of the customer."""
    furnish(place, ADA)

    receipt = place.erase(ADA).receipt

    assert receipt is not None
    assert receipt.counts == {"semantic": 2, "episodic": 2, "history": 1, "links": 2, "ledger": 1, "marks": 0}
    assert receipt.customer_hash == customer_hash(KEY, customer_scope(ADA))
    assert receipt.customer_hash != customer_hash("another key", customer_scope(ADA))
    assert receipt.requested_at <= receipt.completed_at
    assert any("backups" in each for each in receipt.not_covered)
    assert any("vacuum" in each for each in receipt.not_covered)
    shown = repr(receipt)
    assert not any(word in shown for word in (ADA, "teal", "Basic", "shop", customer_scope(ADA).key))


def test_receipts_are_kept_and_listed_newest_first(place: Place) -> None:
    """Of all, or of one customer through the keyed hash, in pages; without a key nobody can be asked for."""
    given = []
    for customer_id in (ADA, GRACE, ADA, ADA):
        place.remember(customer_id, "Likes teal")
        receipt = place.erase(customer_id).receipt
        assert receipt is not None
        given.append(receipt)
    find = place.engine.administration.find_receipts
    newest_first = given[::-1]

    assert find(None, limit=50, cursor="") == (newest_first, "")
    first, cursor = find(None, limit=3, cursor="")
    assert (first, find(None, limit=3, cursor=cursor)) == (newest_first[:3], (newest_first[3:], ""))
    assert find(ADA, limit=50, cursor="")[0] == [r for r in newest_first if r is not given[1]]
    of_ada, cursor = find(ADA, limit=2, cursor="")
    assert [*of_ada, *find(ADA, limit=2, cursor=cursor)[0]] == find(ADA, limit=50, cursor="")[0]
    nameless = Place(place.settings.url, place.settings.namespace, policy=Policy())
    with pytest.raises(SettingInvalid):
        nameless.engine.administration.find_receipts(ADA, limit=50, cursor="")
    assert len(nameless.engine.administration.find_receipts(None, limit=50, cursor="")[0]) == 4


# --- death on the way ---------------------------------------------------------------------------


@pytest.mark.parametrize("next_call", ["recall", "upkeep", "remember"])
def test_an_erasure_that_died_is_finished_by_the_next_call(place: Place, next_call: str) -> None:
    """Killed before each of its writes in turn; afterwards all is gone, with a receipt that counts it all."""
    calls: dict[str, Callable[[str], object]] = {
        "recall": place.texts,
        "upkeep": lambda _: place.engine.administration.expire(),
        "remember": lambda customer_id: place.remember(customer_id, "Said anew"),
    }
    died = 0
    # Every step for a recall; for the others some, since what they finish it with is the same.
    step = 1 if next_call == "recall" else 4
    while True:
        customer_id = f"ada-{died}@example.com"
        furnish(place, customer_id)
        if not die(place, "erase", customer_id, 1 + died * step):
            break
        died += 1
        calls[next_call](customer_id)
        intact = place.texts(customer_id)
        if set(intact) >= set(texts_of(customer_id)):
            assert died <= 3 * step  # it had not begun; what was half linked is brought home first
            continue
        scope = customer_scope(customer_id)
        if next_call == "remember":
            assert intact == ["Said anew"]
            continue
        assert place.rows(scope) == []
        (receipt,), _ = place.engine.administration.find_receipts(customer_id, limit=9, cursor="")
        assert (receipt.deleted, receipt.counts["links"], receipt.counts["ledger"]) == (5, 2, 1)
        place.remember(customer_id, "Said anew")
        assert place.texts(customer_id) == ["Said anew"]
    assert died * step > 12


def test_an_import_that_died_is_completed_by_the_same_again(place: Place) -> None:
    """Killed before each of its writes in turn."""
    place.remember(GRACE, "Starts the namespace")
    died = 0
    while True:
        customers = [f"ada-{died}@example.com", f"bob-{died}@example.com"]
        is_dead = die(place, "import", export(*customers).decode(), died + 1)
        again = place.engine.import_tickets(tickets_of(export(*customers))).results
        assert all(result.status in {"imported", "replaced", "unchanged"} for result in again)
        third = place.engine.import_tickets(tickets_of(export(*customers))).results
        assert {str(result.status) for result in third} == {"unchanged"}
        for customer_id in customers:
            assert place.texts(customer_id) == [f"One of {customer_id}", f"Two of {customer_id}"]
        if not is_dead:
            break
        died += 1
    assert died >= 3


# --- writes that come too late ------------------------------------------------------------------


def test_a_write_that_lands_after_the_erasure_began_does_not_survive_it(place: Place) -> None:
    """It was decided before, the customer is erased while it embeds, and it says that nothing was kept."""
    furnish(place, ADA)
    late = Place(place.settings.url, place.settings.namespace, meanwhile=lambda: place.erase(ADA))

    for text, attribute, conversation in (("Likes plum", "", "late"), ("Is on Team", "plan", "later")):
        with pytest.raises(ErasureUnderWay):
            late.remember(ADA, text, attribute=attribute, conversation_id=conversation)
        assert place.rows(customer_scope(ADA)) == []
        assert place.links.find(conversation) is None
    place.remember(ADA, "Said anew")
    assert place.texts(ADA) == ["Said anew"]


def test_an_import_that_lands_after_the_erasure_began_does_not_survive_it(place: Place) -> None:
    """That customer's ticket is reported as failed, the others' are imported."""
    furnish(place, ADA)
    late = Place(place.settings.url, place.settings.namespace, meanwhile=lambda: place.erase(ADA))
    body = [ticket("new", ADA, message(3, "New words")), ticket("other", GRACE, message(3, "Others"))]

    results = late.engine.import_tickets(tickets_of(json.dumps({"tickets": body}).encode())).results

    assert [(r.status, r.code) for r in results] == [("failed", "erasure_under_way"), ("imported", "")]
    assert place.rows(customer_scope(ADA)) == []
    assert place.texts(GRACE) == ["Others"]


class LateStore(MemoryStore):
    """A store in which something happens between a move's reading and its writing."""

    meanwhile: Callable[[], object]

    def write(self, scope: Scope, memories: list[Stored]) -> None:  # type: ignore[override]
        """As the real one, later."""
        self.meanwhile()
        super().write(scope, memories)


def test_a_move_that_lands_after_the_erasure_began_does_not_survive_it(place: Place) -> None:
    """The conversation is linked to nobody, and its memories are not the customer's."""
    furnish(place, ADA)
    place.remember("", "Said in the conversation", conversation_id="conv-9")
    store = LateStore(place.namespace, place.store.about)
    store.meanwhile = lambda: place.erase(ADA)
    receipts = Receipts(place.namespace, KEY)
    erasing = Erasing(place.namespace, place.links, place.ledger, receipts, lambda: 1.0)

    with pytest.raises(ErasureUnderWay), erasing.watched(store):
        Identity(place.links, store, Merging(place.namespace, store)).link(
            Caller.checked(ADA, "conv-9"), relink=False, now=1.0
        )

    assert place.rows(customer_scope(ADA)) == []
    assert place.links.find("conv-9") is None


def test_a_late_write_whose_process_died_is_never_read_and_soon_gone(place: Place) -> None:
    """It lies in the store for nobody; the next recall, or the upkeep, takes it away."""
    for next_call in (lambda: place.texts(ADA), place.engine.administration.expire):
        furnish(place, ADA)
        scope = customer_scope(ADA)
        store = place.store
        store.everything(scope)
        place.erase(ADA)
        late = in_scope(
            Memory(
                memory_id="",
                text="Late",
                kind=Kind.SEMANTIC,
                occurred_at=1,
                recorded_at=1,
                digest=digest("Late"),
            ),
            scope,
        )
        store.write(scope, [(late, vector_of("Late"))])
        assert len(place.rows(scope)) == 1
        assert place.store.everything(scope) == []
        assert place.store.read(scope, [late.memory_id]) == []
        next_call()
        assert place.rows(scope) == []
        assert place.texts(ADA) == []


def test_of_writes_at_the_same_time_those_that_were_answered_stay(place: Place) -> None:
    """While one thread erases, another writes: what it was told is stored is there, nothing from before."""
    place.remember(ADA, *[f"Before {n}" for n in range(200)])
    stored, refused = [], 0
    done = threading.Event()

    def erase() -> None:
        place.erase(ADA)
        done.set()

    erasing = threading.Thread(target=erase)
    erasing.start()
    number = 0
    while not done.is_set() or number < 3:
        number += 1
        was_done = done.is_set()
        try:
            place.remember(ADA, f"During {number}")
        except ErasureUnderWay:
            refused += 1
        else:
            stored += [f"During {number}"] if was_done else []
    erasing.join()
    found = place.texts(ADA)
    assert not [text for text in found if text.startswith("Before")]
    assert set(found) >= set(stored)


def test_the_row_of_an_erasure_goes_after_a_day(chroma: ChromaServer) -> None:
    """Until then it bars late writes; afterwards not even a hash of the id is left among the memories."""
    now = 1_700_000_000.0
    place = Place(chroma.url, f"e{uuid.uuid4().hex[:12]}", clock=lambda: now)
    place.remember(ADA, "Likes teal")
    place.erase(ADA)
    place.remember(ADA, "Said anew")
    assert place.engine.administration.describe()["rows"] == 2

    place.engine.administration.expire()
    assert place.engine.administration.describe()["rows"] == 2
    now += KEPT_SECONDS + 1
    place.engine.administration.expire()

    assert place.engine.administration.describe()["rows"] == 1
    assert place.texts(ADA) == ["Said anew"]
    place.erase(ADA)
    assert place.rows(customer_scope(ADA)) == []


# --- what it costs ------------------------------------------------------------------------------


def test_a_recall_costs_no_request_more_and_a_write_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recall lists and searches; a write looks at what expires and is known, writes, and looks twice more.

    Whether the customer was merged meanwhile, and whether it was erased; a duplicate asks the first alone.
    """
    methods: list[str] = []
    on_collection = Chroma._on_collection

    def counted(self: Chroma, name: str, method: str, *rest: object, **more: object) -> object:
        methods.append(method)
        return on_collection(self, name, method, *rest, **more)  # type: ignore[arg-type]

    place.remember(ADA, "Likes teal")
    place.erase(ADA)
    place.remember(ADA, "Likes plum")
    monkeypatch.setattr(Chroma, "_on_collection", counted)

    place.engine.recall(Caller.checked(ADA), Question(query="plum"))
    assert sorted(methods) == ["get", "query"]
    methods.clear()
    place.remember(ADA, "Likes grey")
    assert methods == ["get", "get", "upsert", "get", "get"]
    methods.clear()
    place.remember(ADA, "Likes grey")
    assert methods == ["get", "get", "get"]


def test_2500_memories_are_erased_in_few_requests(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are gone and counted; the requests grow with the pages, not with the memories."""
    for start in range(0, 2_500, 500):
        place.remember(ADA, *[f"Parcel {n}" for n in range(start, start + 500)])
    requests = 0
    run = Chroma._run

    def counted(self: Chroma, work: Callable[[], object]) -> object:
        nonlocal requests
        requests += 1
        return run(self, work)

    monkeypatch.setattr(Chroma, "_run", counted)
    began = time.monotonic()
    receipt = place.erase(ADA).receipt

    seconds = time.monotonic() - began
    sys.stdout.write(f"2,500 memories erased in {seconds:.1f} s with {requests} requests\n")
    assert receipt is not None
    assert receipt.deleted == 2_500
    assert place.rows(customer_scope(ADA)) == []
    assert requests < 130


# --- retention ----------------------------------------------------------------------------------


def test_what_was_imported_is_kept_as_long_as_its_source_says(chroma: ChromaServer) -> None:
    """The earlier of source and kind; other sources and what was said in a chat stay; counted by both."""
    now = 1_709_290_800.0  # the day of the messages
    policy = Policy(retention_days_by_source={"shop": 10}, retention_days={Kind.EPISODIC: 20})
    place = Place(chroma.url, f"e{uuid.uuid4().hex[:12]}", clock=lambda: now, policy=policy)
    body = [ticket("1", ADA, message(1, "Shop")), {**ticket("2", ADA, message(1, "Desk")), "source": "desk"}]
    place.engine.import_tickets(tickets_of(json.dumps({"tickets": body}).encode()))
    place.remember(ADA, "Likes teal")
    assert place.texts(ADA) == ["Desk", "Likes teal", "Shop"]

    now += 11 * SECONDS_A_DAY
    assert place.texts(ADA) == ["Desk", "Likes teal"]
    expired = place.engine.administration.expire()
    assert (expired.kinds, expired.sources) == ({"episodic": 1}, {"shop": 1})
    now += 10 * SECONDS_A_DAY
    expired = place.engine.administration.expire()
    assert (expired.kinds, expired.sources) == ({"episodic": 1}, {"desk": 1})
    assert place.texts(ADA) == ["Likes teal"]


def test_an_unlinked_conversation_is_erased_in_the_same_way(place: Place) -> None:
    """It is named by a keyed hash of its own, and a late write does not survive either."""
    place.remember("", "Likes teal", conversation_id="conv-1")
    store = place.store
    scope = conversation_scope("conv-1")
    assert len(store.everything(scope)) == 1

    receipt = place.erase("", conversation_id="conv-1").receipt

    assert receipt is not None
    assert receipt.customer_hash == customer_hash(KEY, scope) != customer_hash(KEY, customer_scope("conv-1"))
    assert place.rows(scope) == []
