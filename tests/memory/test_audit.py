"""The audit keeps what was noted, in order, for as long as it has to, and no id that can be guessed."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from development.chroma_server import ChromaServer
from memory import audit as module
from memory.audit import MAX_IDS, Act, Asked, Audit, Entry
from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.clock import Deadline
from memory.errors import ParameterInvalid, SettingInvalid
from memory.namespace import Namespace
from memory.scope import hashed, keyed_hash
from memory.settings import AuditSettings, ChromaSettings

NOW = datetime(2026, 11, 29, 12, 30, tzinfo=UTC).timestamp()
HOUR, DAY = 3_600.0, 86_400.0
KEY = "a key of sixteen or more"


def audit_of(server: ChromaServer, name: str, **settings: object) -> Audit:
    """The audit of a namespace, as another process would open it."""
    return Audit(_namespace(server, name), AuditSettings(**settings))  # type: ignore[arg-type]


def _namespace(server: ChromaServer, name: str) -> Namespace:
    chroma = ChromaSettings(url=server.url, namespace=name)
    return Namespace(Chroma(chroma, Deadline.after(60.0)), chroma)


def rows_of(server: ChromaServer, name: str) -> list[Row]:
    """Everything the store holds of the audit, vectors included."""
    namespace = _namespace(server, name)
    return namespace.chroma.get(namespace.audit, with_vectors=True)


def act(verb: str = "remember", who: str = "helpdesk", outcome: str = "ok") -> Act:
    """Something that was done."""
    return Act(who=who, verb=verb, outcome=outcome, counts={"stored": 1})


def all_pages(audit: Audit, *, limit: int, now: float = NOW, who: str = "", verb: str = "") -> list[Entry]:
    """Page after page to the end."""
    found: list[Entry] = []
    cursor = ""
    while True:
        entries, cursor = audit.page(Asked(limit=limit, cursor=cursor, who=who, verb=verb), now=now)
        assert len(entries) <= limit
        found += entries
        if not cursor:
            return found


@pytest.fixture
def filled(chroma: ChromaServer, namespace: str) -> Audit:
    """An audit with entries of several hours and days, two of them at the same moment."""
    audit = audit_of(chroma, namespace)
    for number, ago in enumerate([40 * DAY, 8 * DAY, DAY, 13 * HOUR, 2 * HOUR, 60.0, 1.0, 1.0]):
        audit.append(act(f"verb{number}", "even" if number % 2 == 0 else "odd"), now=NOW - ago)
    return audit


def verbs(entries: Sequence[Entry]) -> list[str]:
    """The verbs of entries, in order."""
    return [entry.verb for entry in entries]


@pytest.mark.parametrize("limit", [1, 3, 8, 500])
def test_pages_lead_from_the_newest_to_the_oldest(filled: Audit, limit: int) -> None:
    """Every entry once, whatever the size of the page."""
    found = all_pages(filled, limit=limit)
    assert sorted(verbs(found)) == [f"verb{n}" for n in range(8)]
    assert [entry.position for entry in found] == sorted((e.position for e in found), reverse=True)
    assert verbs(found)[2:] == ["verb5", "verb4", "verb3", "verb2", "verb1", "verb0"]


def test_what_is_noted_meanwhile_does_not_disturb_the_pages(filled: Audit) -> None:
    """A cursor leads on to what is older, and nothing comes twice."""
    first, cursor = filled.page(Asked(limit=3), now=NOW)
    filled.append(act("new"), now=NOW)
    second, _ = filled.page(Asked(limit=500, cursor=cursor), now=NOW)
    assert len(first) + len(second) == 8
    assert not {e.entry_id for e in first} & {e.entry_id for e in second}
    assert verbs(filled.page(Asked(limit=1), now=NOW)[0]) == ["new"]


def test_filters_give_only_what_was_asked_for(filled: Audit) -> None:
    """By key name, by verb, and by both; a name nobody has finds nothing and comes to an end."""
    assert verbs(all_pages(filled, limit=2, who="odd"))[1:] == ["verb5", "verb3", "verb1"]
    assert verbs(all_pages(filled, limit=2, verb="verb4")) == ["verb4"]
    assert all_pages(filled, limit=2, who="odd", verb="verb4") == []
    assert all_pages(filled, limit=2, who="od") == []


def test_a_page_that_looked_at_much_goes_on_by_its_cursor(
    filled: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter that finds little never reads the whole list at once, and loses nothing."""
    monkeypatch.setattr(module, "MAX_LOOKED_AT", 3)
    entries, cursor = filled.page(Asked(limit=500, verb="verb0"), now=NOW)
    assert entries == []
    assert cursor
    assert verbs(all_pages(filled, limit=500, verb="verb0")) == ["verb0"]


def test_an_entry_of_a_clock_that_is_ahead_is_listed(filled: Audit) -> None:
    """Two processes never agree to the second, and an hour may have begun for one of them only."""
    filled.append(act("ahead"), now=NOW + 40 * 60)
    assert verbs(all_pages(filled, limit=3))[0] == "ahead"


@pytest.mark.parametrize("cursor", ["x", "é", "bmFufA==", "aW5mfA==", "AAAA", "MXw", "fA=="])
def test_a_cursor_that_is_none_of_ours_is_refused(filled: Audit, cursor: str) -> None:
    """Also one that decodes to no number, or to one that is no moment."""
    with pytest.raises(ParameterInvalid):
        filled.page(Asked(limit=1, cursor=cursor), now=NOW)


def test_an_audit_nobody_wrote_to_is_empty(chroma: ChromaServer, namespace: str) -> None:
    """Reading and expiring it starts nothing."""
    audit = audit_of(chroma, namespace)
    assert audit.page(Asked(limit=5), now=NOW) == ([], "")
    assert audit.expire(now=NOW) == 0
    space = _namespace(chroma, namespace)
    assert space.chroma.metadata(space.audit) is None


def test_what_is_older_than_the_retention_is_not_listed_and_then_gone(
    filled: Audit, chroma: ChromaServer, namespace: str
) -> None:
    """By the day: 8 days are within 10, 40 are not."""
    audit = audit_of(chroma, namespace, days=10)
    assert "verb0" not in verbs(all_pages(audit, limit=2))
    assert len(rows_of(chroma, namespace)) == 8
    assert audit.expire(now=NOW) == 1
    assert audit.expire(now=NOW) == 0
    assert verbs(all_pages(filled, limit=500))[-1] == "verb1"
    assert len(rows_of(chroma, namespace)) == 7


def test_upkeep_deletes_more_than_a_page(
    chroma: ChromaServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves everything that is not old enough."""
    monkeypatch.setattr(module, "PAGE", 4)
    audit = audit_of(chroma, namespace)
    for number in range(11):
        audit.append(act(), now=NOW - 100 * DAY + number)
    audit.append(act("kept"), now=NOW - 89 * DAY)
    assert audit.expire(now=NOW) == 11
    assert verbs(all_pages(audit, limit=5)) == ["kept"]


def test_a_write_of_a_new_day_takes_old_entries_along(chroma: ChromaServer, namespace: str) -> None:
    """Without anybody calling upkeep the list does not grow for ever."""
    audit = audit_of(chroma, namespace)
    audit.append(act("old"), now=NOW - 91 * DAY)
    audit.append(act("young"), now=NOW - DAY)
    audit.append(act("new"), now=NOW)
    assert {str(row.columns["verb"]) for row in rows_of(chroma, namespace)} == {"young", "new"}


def test_ids_are_hashed_under_the_key(chroma: ChromaServer, namespace: str) -> None:
    """Whoever has the key can find a customer's entries; the plain ids and plain hashes are nowhere."""
    audit = audit_of(chroma, namespace, hash_key=KEY)
    audit.append(
        Act(
            who="k",
            verb="remember",
            outcome="ok",
            customer_id="customer-of-ours",
            memory_ids=["memory-id"],
            tickets=[("shop", "ticket-77")],
            conversation_ids=["conversation-9"],
        ),
        now=NOW,
    )
    (entry,), _ = audit.page(Asked(limit=5), now=NOW)
    assert entry.customer == keyed_hash(KEY, "customer", "customer-of-ours")
    assert entry.memories == (keyed_hash(KEY, "memory", "memory-id"),)
    assert entry.tickets == (keyed_hash(KEY, "ticket", "shop", "ticket-77"),)
    assert entry.conversations == (keyed_hash(KEY, "conversation", "conversation-9"),)
    (row,) = rows_of(chroma, namespace)
    stored = json.dumps([row.row_id, row.text, row.columns])
    for plain in ("customer-of-ours", "memory-id", "ticket-77", "conversation-9", KEY):
        assert plain not in stored
    assert hashed("customer", "customer-of-ours") not in stored


def test_without_a_key_ids_are_left_out(chroma: ChromaServer, namespace: str) -> None:
    """A plain hash of a guessable id would tell whose it is to whoever guesses."""
    audit = audit_of(chroma, namespace)
    audit.append(
        Act(who="k", verb="v", outcome="ok", customer_id="c", memory_ids=["m"], tickets=[("s", "t")]), now=NOW
    )
    (entry,), _ = audit.page(Asked(limit=5), now=NOW)
    assert (entry.customer, entry.memories, entry.tickets, entry.conversations) == ("", (), (), ())


def test_a_long_list_of_ids_is_cut(chroma: ChromaServer, namespace: str) -> None:
    """An import of thousands of tickets stays a small entry."""
    audit = audit_of(chroma, namespace, hash_key=KEY)
    tickets = [("shop", str(n)) for n in range(5_000)]
    audit.append(Act(who="k", verb="v", outcome="ok", tickets=tickets, counts={"tickets": 5_000}), now=NOW)
    (entry,), _ = audit.page(Asked(limit=5), now=NOW)
    assert len(entry.tickets) == MAX_IDS
    assert entry.counts == {"tickets": 5_000}


@pytest.mark.parametrize("fields", [{"days": 0}, {"days": 3_651}, {"hash_key": "fifteen letters"}])
def test_settings_that_cannot_be_used_are_refused(fields: dict[str, object]) -> None:
    """Without showing the key."""
    with pytest.raises(SettingInvalid) as failure:
        AuditSettings(**fields)  # type: ignore[arg-type]
    assert "fifteen letters" not in str(failure.value)
    assert KEY not in repr(AuditSettings(hash_key=KEY))
