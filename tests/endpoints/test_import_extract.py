"""Past tickets as facts: batched by customer, kept as messages where the model fails, replaced later."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from development.chat_server import TOKENS, ChatServer
from development.daemon import PluginProcess, Workspace
from tests.conftest import Json
from tests.endpoints.conftest import Api, message, ticket
from tests.endpoints.test_import import statuses

LLM = {"provider": "p", "model": "m", "mode": "chat"}
IMPORT = "/tickets/import?mode=extract"
_LINE = re.compile(r"^\[(\d+)\] \S+ (\S+) \S+ (CUSTOMER|AGENT \(context only\)): (.*)$", re.MULTILINE)
_STATED = re.compile(r"(\w[\w ]*?) is (\w+)")


def attentive(prompt: str) -> str:
    """A language model that takes every "x is y" of a customer for a value of the slot x."""
    facts = [
        {
            "text": f"{name.capitalize()} is {value}.",
            "kind": "semantic",
            "attribute": name.casefold(),
            "confidence": 0.9,
            "message": int(number),
        }
        for number, _, who, text in _LINE.findall(prompt)
        if who == "CUSTOMER"
        for name, value in _STATED.findall(text)
    ]
    return json.dumps({"facts": facts})


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A language model's service that reads attentively."""
    with ChatServer() as server:
        server.answers = attentive
        yield server


@pytest.fixture
def facts(plugin: PluginProcess, settings: Json, chat: ChatServer) -> Api:
    """The endpoints with that service in the settings."""
    return Api(plugin, {**settings, "llm_base_url": chat.url, "llm_model": "test-chat"})


def send(api: Api, *tickets: Json, **query: str) -> Json:
    """Import tickets as facts, and give the report."""
    more = "".join(f"&{name}={value}" for name, value in query.items())
    report: Json = api.post(IMPORT + more, {"tickets": list(tickets)})
    return report


def memories(api: Api, customer_id: str = "A", *, history: bool = False) -> list[Json]:
    """All that is known of a customer."""
    page = api.get(f"/memories?customer_id={customer_id}&limit=500&include_superseded={str(history).lower()}")
    listed: list[Json] = page["memories"]
    return listed


# --- facts instead of messages ------------------------------------------------------------------


def test_a_ticket_becomes_facts_instead_of_messages(facts: Api, chat: ChatServer) -> None:
    """With the date of the message each comes from, its conversation and case; the tokens are told."""
    report = send(
        facts,
        ticket(
            "7",
            "A",
            message(1, "Hello! My plan is Basic"),
            message(2, "Your plan is Pro, if you like", role="agent"),
            message(3, "Our database is MySQL, thanks"),
            case_id="k1",
        ),
    )

    assert (statuses(report), report["memories"]["stored"]) == ({"imported": 1}, 2)
    assert (report["tokens"], report["facts_rejected"], report["problems"]) == (TOKENS, 0, [])
    found = {m["attribute"]: m for m in memories(facts)}
    assert {name: m["text"] for name, m in found.items()} == {
        "my plan": "My plan is Basic.",
        "our database": "Our database is MySQL.",
    }
    assert found["our database"]["occurred_at"] == "2024-03-03T10:00:00Z"
    assert {(m["kind"], m["conversation_id"], m["case_id"]) for m in found.values()} == {
        ("semantic", "shop:7", "k1")
    }
    assert facts.get("/tickets?source=shop&ticket_id=7")["memories"] == 2
    assert "AGENT (context only): Your plan is Pro" in chat.asked[0].user


def test_the_workspaces_model_extracts_too(settings: Json) -> None:
    """The endpoint's selector names a model of the workspace, which is asked once."""
    stated = {"text": "Plan is Pro.", "kind": "semantic", "attribute": "plan", "confidence": 1, "message": 0}
    workspace = Workspace(script=[json.dumps([stated])])
    with PluginProcess(workspace=workspace) as process:
        api = Api(process, {**settings, "llm": LLM})
        report = send(api, ticket("7", "A", message(1, "My plan is Pro")))

        assert (statuses(report), report["tokens"]) == ({"imported": 1}, 10)
        assert facts_of(api) == ["Plan is Pro."]
        assert [call["type"] for call in workspace.requests] == ["llm"]
        assert workspace.requests[0]["request"]["model"] == "m"


def facts_of(api: Api, customer_id: str = "A") -> list[str]:
    """The texts that hold for a customer, sorted."""
    return sorted(m["text"] for m in memories(api, customer_id))


def test_yesterday_in_an_old_ticket_is_the_day_before_its_message(facts: Api, chat: ChatServer) -> None:
    """A ticket of 2024-03-02 that says "yesterday" speaks of 2024-03-01, in the zone that is given."""
    item = {"text": "Moved.", "kind": "episodic", "when": "yesterday", "confidence": 1, "message": 0}
    chat.answers = lambda _: json.dumps([item])
    early = message(2, "I moved yesterday", created_at="2024-03-01T17:00:00Z")
    send(facts, ticket("7", "A", message(2, "I moved yesterday")))
    send(facts, ticket("8", "B", early), timezone="Asia/Shanghai")

    assert memories(facts, "A")[0]["occurred_at"] == "2024-03-01T10:00:00Z"
    assert memories(facts, "B")[0]["occurred_at"] == "2024-02-29T17:00:00Z"
    assert "2024-03-02 01:00" in chat.asked[1].user


def test_a_ticket_without_facts_is_done(facts: Api, chat: ChatServer) -> None:
    """Nothing to keep is no failure, and the ticket is not asked about again."""
    small_talk = ticket("7", "A", message(1, "Hello, and thank you"))

    assert statuses(send(facts, small_talk)) == {"imported": 1}
    assert (memories(facts), statuses(send(facts, small_talk))) == ([], {"unchanged": 1})
    assert len(chat.asked) == 1


def test_private_notes_and_redacted_messages_are_not_shown_to_the_model(facts: Api, chat: ChatServer) -> None:
    """What is not the public conversation stays out of the prompt."""
    send(
        facts,
        ticket(
            "7",
            "A",
            message(1, "My plan is Basic"),
            message(2, "SECRET note", role="agent", public=False),
            message(3, "SECRET words", redacted=True),
        ),
    )

    assert "SECRET" not in chat.asked[0].body
    assert facts_of(facts) == ["My plan is Basic."]


def test_facts_left_out_are_counted(facts: Api, chat: ChatServer) -> None:
    """The report says how many items of the model were not kept."""
    items = [
        {"text": "Plan is Pro.", "kind": "semantic", "confidence": 0.1, "message": 0},
        {"text": "Plan is Team.", "kind": "semantic", "confidence": 0.9, "message": 9},
        {"text": "Likes teal.", "kind": "semantic", "confidence": 0.9, "message": 0},
    ]
    chat.answers = lambda _: json.dumps(items)
    report = send(facts, ticket("7", "A", message(1, "Pro?")))

    assert (report["facts_rejected"], report["memories"]["stored"]) == (2, 1)


def test_the_newest_value_holds_whatever_the_order_of_the_tickets(facts: Api) -> None:
    """History gets its dates, and a value remembered in a chat takes part."""
    send(facts, ticket("9", "A", message(9, "My plan is Pro")))
    send(facts, ticket("3", "A", message(3, "My plan is Basic")))

    assert facts_of(facts) == ["My plan is Pro."]
    old = next(m for m in memories(facts, history=True) if not m["is_current"])
    assert (old["text"], old["superseded_at"]) == ("My plan is Basic.", "2024-03-09T10:00:00Z")


def test_a_dry_run_asks_no_model(facts: Api, chat: ChatServer) -> None:
    """Saying what would happen costs no tokens."""
    report = send(facts, ticket("7", "A", message(1, "My plan is Basic")), dry_run="true")

    assert (statuses(report), report["tokens"], chat.asked) == ({"imported": 1}, 0, [])
    assert memories(facts) == []


def test_without_a_model_an_import_of_facts_says_what_to_set(api: Api) -> None:
    """Nothing is imported as messages instead."""
    body = {"tickets": [ticket("7", "A", message(1, "My plan is Basic"))]}

    assert api.error("POST", IMPORT, body)[1] == "language_model_missing"
    assert memories(api) == []


def test_an_unknown_mode_is_refused(api: Api) -> None:
    """A misspelt mode is not taken for the usual one."""
    assert api.error("POST", "/tickets/import?mode=facts", {"tickets": []})[1] == "parameter_invalid"


# --- batching -----------------------------------------------------------------------------------


def test_tickets_of_one_customer_share_a_question_and_customers_never_do(
    facts: Api, chat: ChatServer
) -> None:
    """Each fact goes back to the ticket it comes from, by the number of its message."""
    tickets = [
        ticket(
            f"{customer}{number}",
            customer,
            message(number, f"Code of {customer} is {customer}{number}word"),
            message(number + 10, f"Item {number} is {customer}thing"),
        )
        for number in (1, 2, 3)
        for customer in ("A", "B", "C")
    ]
    report = send(facts, *tickets)

    assert (statuses(report), report["tokens"]) == ({"imported": 9}, 3 * TOKENS)
    assert len(chat.asked) == 3
    for asked in chat.asked:
        named = {name for name in "ABC" if f"Code of {name} is" in asked.user}
        assert len(named) == 1
        assert len(_LINE.findall(asked.user)) == 6
    for customer in "ABC":
        assert len(memories(facts, customer)) == 4
        for number in (1, 2, 3):
            entry = facts.get(f"/tickets?source=shop&ticket_id={customer}{number}")
            assert entry["memories"] == 2


def test_a_long_ticket_is_asked_about_alone(facts: Api, chat: ChatServer) -> None:
    """A question stays within what a model reads with care."""
    long = [message(1 + n % 28, f"Part {n} is v{n}", message_id=str(n)) for n in range(28)]
    send(facts, ticket("1", "A", *long), ticket("2", "A", *long), ticket("3", "A", message(1, "Plan is Pro")))

    assert sorted(len(_LINE.findall(asked.user)) for asked in chat.asked) == [28, 29]


def test_a_slow_model_does_not_use_up_the_databases_time(facts: Api, chat: ChatServer) -> None:
    """The time limit of the settings is the database's; many questions may take longer than that."""
    chat.pause_seconds = 0.4
    slow = Api(facts.process, {**facts.settings, "timeout_seconds": 1})
    report = send(slow, *(ticket(str(n), f"c{n}", message(1, "My plan is Pro")) for n in range(20)))

    assert statuses(report) == {"imported": 20}
    assert report["problems"] == []


# --- a model that fails -------------------------------------------------------------------------


def _retry_at_once(status: int) -> Callable[[ChatServer], None]:
    return lambda chat: chat.fail(status, 20, headers={"Retry-After": "0"})


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (_retry_at_once(429), "language_model_rate_limited"),
        (_retry_at_once(500), "language_model_failed"),
        (lambda chat: chat.hold_back(), "language_model_failed"),
        (lambda chat: chat.say(""), "language_model_failed"),
        (lambda chat: chat.say("No.", "No!"), "extraction_failed"),
    ],
    ids=["429", "500", "filter", "empty", "nonsense twice"],
)
def test_where_the_model_fails_the_messages_are_kept_until_it_answers(
    facts: Api, chat: ChatServer, trouble: Callable[[ChatServer], None], code: str
) -> None:
    """The report says so, and the same export sent again replaces them with facts."""
    export = ticket("7", "A", message(1, "My plan is Basic"), message(2, "It is fine", role="agent"))
    trouble(chat)
    report = send(facts, export)

    assert (statuses(report), report["memories"]["stored"]) == ({"imported": 1}, 1)
    assert report["problems"] == [{"ticket_id": "7", "code": code, "path": ""}]
    kept = memories(facts)
    assert [(m["text"], m["kind"], m["reply"]) for m in kept] == [
        ("My plan is Basic", "episodic", "It is fine")
    ]

    chat.forget_script()
    again = send(facts, export)
    assert (statuses(again), again["problems"]) == ({"replaced": 1}, [])
    assert again["memories"] == {"stored": 1, "removed": 1}
    assert [(m["text"], m["kind"]) for m in memories(facts)] == [("My plan is Basic.", "semantic")]
    assert statuses(send(facts, export)) == {"unchanged": 1}


def test_a_failure_of_one_question_leaves_the_others(facts: Api, chat: ChatServer) -> None:
    """Only the tickets the model failed on are kept as messages."""

    def moody(prompt: str) -> str:
        return "" if "Bad" in prompt else attentive(prompt)

    chat.answers = moody
    report = send(
        facts,
        ticket("1", "A", message(1, "My plan is Basic")),
        ticket("2", "B", message(1, "Bad. My plan is Pro")),
        ticket("3", "C", message(1, "My plan is Team")),
    )

    assert statuses(report) == {"imported": 3}
    assert [(p["ticket_id"], p["code"]) for p in report["problems"]] == [("2", "language_model_failed")]
    kinds = {c: [m["kind"] for m in memories(facts, c)] for c in "ABC"}
    assert kinds == {"A": ["semantic"], "B": ["episodic"], "C": ["semantic"]}


def test_a_refused_key_stops_the_import_and_imports_nothing(facts: Api, chat: ChatServer) -> None:
    """It would be refused for every ticket, so the administrator is told once."""
    chat.key = "another"
    body = {"tickets": [ticket("7", "A", message(1, "My plan is Basic"))]}

    assert facts.error("POST", IMPORT, body)[1] == "language_model_refused"
    assert memories(facts) == []
    chat.key = ""
    assert statuses(facts.post(IMPORT, body)) == {"imported": 1}


def test_messages_imported_before_become_facts(facts: Api) -> None:
    """The same export in the other mode replaces what there was, both ways."""
    export = ticket("7", "A", message(1, "My plan is Basic"))
    facts.post("/tickets/import", {"tickets": [export]})
    assert statuses(send(facts, export)) == {"replaced": 1}
    assert facts_of(facts) == ["My plan is Basic."]

    assert statuses(facts.post("/tickets/import", {"tickets": [export]})) == {"replaced": 1}
    assert facts_of(facts) == ["My plan is Basic"]


# --- tickets that change ------------------------------------------------------------------------


def test_a_changed_ticket_replaces_its_facts(facts: Api) -> None:
    """What it says no longer is gone for good, not history."""
    send(facts, ticket("7", "A", message(1, "My plan is Basic and our city is Lyon")))
    report = send(facts, ticket("7", "A", message(1, "My plan is Pro")))

    assert (statuses(report), report["memories"]) == ({"replaced": 1}, {"stored": 1, "removed": 2})
    assert [m["text"] for m in memories(facts, history=True)] == ["My plan is Pro."]


def test_a_value_that_a_changed_ticket_had_superseded_holds_again(facts: Api) -> None:
    """A replaced ticket never happened as it was; what another one says stands."""
    send(facts, ticket("1", "A", message(1, "My plan is Basic")))
    send(facts, ticket("2", "A", message(2, "My plan is Pro")))
    send(facts, ticket("2", "A", message(2, "Our city is Lyon")))

    assert facts_of(facts) == ["My plan is Basic.", "Our city is Lyon."]


LIKES = {"text": "Likes teal.", "kind": "semantic", "confidence": 0.9}


def fond(prompt: str) -> str:
    """A language model that takes "teal" for a fact without a slot."""
    lines = [int(n) for n, _, who, text in _LINE.findall(prompt) if who == "CUSTOMER" and "teal" in text]
    return json.dumps({"facts": [{**LIKES, "message": number} for number in lines]})


@pytest.mark.parametrize("at_once", [False, True])
def test_a_fact_of_two_tickets_survives_the_change_of_one(
    facts: Api, chat: ChatServer, at_once: bool
) -> None:
    """It goes when neither states it any more."""
    chat.answers = fond
    first, second = ticket("1", "A", message(1, "I like teal")), ticket("2", "A", message(2, "teal again"))
    for batch in [[first, second]] if at_once else [[first], [second]]:
        send(facts, *batch)
    assert facts_of(facts) == ["Likes teal."]

    send(facts, ticket("1", "A", message(1, "I like blue")))
    assert facts_of(facts) == ["Likes teal."]
    send(facts, ticket("2", "A", message(2, "blue again")))
    assert facts_of(facts) == []


def test_a_fact_of_two_tickets_survives_the_forgetting_of_one(facts: Api, chat: ChatServer) -> None:
    """DELETE /tickets takes what that ticket alone stated."""
    chat.answers = fond
    send(facts, ticket("1", "A", message(1, "I like teal")), ticket("2", "A", message(2, "teal again")))

    assert facts.send("DELETE", "/tickets?source=shop&ticket_id=1").status == 200
    assert facts_of(facts) == ["Likes teal."]


def test_what_was_remembered_in_a_chat_survives_the_change_of_a_ticket(facts: Api, chat: ChatServer) -> None:
    """An import takes back only what it brought."""
    chat.answers = fond
    facts.post("/memories", {"customer_id": "A", "content": "Likes teal."})
    send(facts, ticket("1", "A", message(1, "I like teal")))
    send(facts, ticket("1", "A", message(1, "I like blue")))

    assert facts_of(facts) == ["Likes teal."]


def test_a_ticket_that_changes_its_customer_takes_its_facts_along(facts: Api) -> None:
    """Nothing of it stays with the first customer."""
    send(facts, ticket("1", "A", message(1, "My plan is Basic")))
    send(facts, ticket("1", "B", message(1, "My plan is Basic")))

    assert (memories(facts, "A", history=True), facts_of(facts, "B")) == ([], ["My plan is Basic."])


def test_forgetting_the_conversation_of_a_ticket_forgets_its_entry(facts: Api) -> None:
    """The ledger tells the truth of tickets whose facts are gone."""
    send(facts, ticket("1", "A", message(1, "My plan is Basic")))
    answer: Any = facts.send("DELETE", "/memories?customer_id=A&conversation_id=shop:1&dry_run=false")

    assert answer.json()["deleted"] == 1
    assert memories(facts, history=True) == []
    assert facts.error("GET", "/tickets?source=shop&ticket_id=1") == (404, "not_found")


def test_the_same_export_twice_asks_the_model_once(facts: Api, chat: ChatServer) -> None:
    """The second time every ticket is unchanged and free."""
    export = [ticket(str(n), f"c{n % 2}", message(1, f"Item {n} is v{n}")) for n in range(6)]
    send(facts, *export)
    asked = len(chat.asked)
    report = send(facts, *export)

    assert (statuses(report), report["tokens"], len(chat.asked)) == ({"unchanged": 6}, 0, asked)


def test_a_forgotten_fact_is_not_imported_again_in_any_form(facts: Api) -> None:
    """Neither as a fact, nor as the message that stated it, nor from another ticket; neighbours stay."""
    told = message(1, "My plan is Basic and our city is Lyon")
    send(facts, ticket("7", "A", told, message(2, "My colour is teal")))
    (plan,) = [m for m in memories(facts) if m["attribute"] == "my plan"]
    gone = facts.send("DELETE", f"/memories?customer_id=A&memory_ids={plan['memory_id']}&dry_run=false")
    assert gone.json()["deleted"] == 1
    left = {"And our city is Lyon.", "My colour is teal."}
    assert {m["text"] for m in memories(facts)} == left

    grown = ticket("7", "A", told, message(2, "My colour is teal"), message(3, "My tea is green"))
    assert statuses(send(facts, grown)) == {"replaced": 1}
    assert {m["text"] for m in memories(facts)} == {*left, "My tea is green."}
    send(facts, ticket("8", "A", message(1, "My plan is Basic")))
    assert {m["text"] for m in memories(facts)} == {*left, "My tea is green."}
    facts.post("/tickets/import", {"tickets": [grown]})
    assert facts.texts("A") == ["My colour is teal", "My tea is green"]
