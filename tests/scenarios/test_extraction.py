"""Extraction through the real process: facts that stay true, or a visible failure."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from development.chat_server import TOKENS, ChatServer
from development.daemon import PluginFailure, PluginProcess, Workspace
from tests.conftest import Json, Nodes

ADA = "ada@example.com"
LLM = {"provider": "p", "model": "m", "mode": "chat"}


def fact(text: str, **more: Any) -> Json:
    """One item as a language model lists it."""
    return {
        "text": text,
        "kind": "semantic",
        "about_customer": True,
        "subject": "",
        "attribute": "",
        "slot": None,
        "when": None,
        "still_true": True,
        "confidence": 0.9,
        "message": 0,
        **more,
    }


def listed(*facts: Json) -> str:
    """A language model's answer."""
    return json.dumps({"facts": facts}, ensure_ascii=False)


class Dify:
    """The nodes with a language model of the workspace, which follows a script."""

    def __init__(self, nodes: Nodes, workspace: Workspace) -> None:
        self.nodes = nodes
        self.workspace = workspace
        self._before = len(workspace.requests)

    def remember(self, content: Any, *answers: str | Exception, **parameters: Any) -> Any:
        """Run a remember node that extracts, with these answers of the language model."""
        self.workspace.script.extend(answers)
        given = {"customer_id": ADA, "mode": "extract", "llm": LLM, **parameters}
        return self.nodes.remember(content, **given)

    def failure(self, content: Any, *answers: str | Exception, **parameters: Any) -> PluginFailure:
        """Run a remember node that has to fail."""
        with pytest.raises(PluginFailure) as failure:
            self.remember(content, *answers, **parameters)
        return failure.value

    @property
    def prompts(self) -> list[str]:
        """What the language model was asked in this test, without the rules."""
        calls = [c["request"] for c in self.workspace.requests[self._before :] if c["type"] == "llm"]
        return [call["prompt_messages"][1]["content"] for call in calls]

    @property
    def texts(self) -> list[str]:
        """What is known of the customer and holds."""
        return sorted(self.nodes.texts("", customer_id=ADA, limit=100))

    @property
    def history(self) -> list[Json]:
        """All that is known of the customer, history included."""
        answer = self.nodes.recall("", customer_id=ADA, include_superseded=True, limit=100)
        memories: list[Json] = answer["memories"]
        return memories


@pytest.fixture(scope="module")
def own_workspace() -> Workspace:
    """A workspace whose script only this module writes."""
    return Workspace()


@pytest.fixture(scope="module")
def process(own_workspace: Workspace) -> Iterator[PluginProcess]:
    """A plugin process of that workspace."""
    with PluginProcess(workspace=own_workspace) as started:
        yield started


@pytest.fixture
def dify(process: PluginProcess, own_workspace: Workspace, credentials: Json) -> Iterator[Dify]:
    """The nodes with an empty script; in the end every answer of it has been used."""
    own_workspace.script.clear()
    yield Dify(Nodes(process, credentials), own_workspace)
    assert not own_workspace.script


# --- what is kept -------------------------------------------------------------------------------

CHAT = [
    {"role": "user", "content": "Hi! I moved my shop from MySQL to PostgreSQL yesterday."},
    {"role": "assistant", "content": "Great. You could try the Pro plan."},
    {"role": "user", "content": "Please write to me, do not call."},
]


def test_messages_become_a_few_facts(dify: Dify) -> None:
    """One call to the language model; facts with kind, slot and date; the tokens are told."""
    answer = dify.remember(
        CHAT,
        listed(
            fact("The customer's shop uses PostgreSQL.", attribute="database", when="yesterday"),
            fact("Write to the customer, do not call.", kind="procedural", message=2),
        ),
        occurred_at="2024-03-02T10:00:00Z",
    )

    assert (answer["stored"], answer["skipped"], answer["tokens"]) == (2, 0, 10)
    assert [m["action"] for m in answer["memories"]] == ["created", "created"]
    database, rule = answer["memories"]
    assert (database["kind"], database["attribute"]) == ("semantic", "database")
    assert database["occurred_at"] == "2024-03-01T10:00:00Z"
    assert (rule["kind"], rule["attribute"]) == ("procedural", "")
    assert rule["occurred_at"] == "2024-03-02T10:00:00Z"
    assert len(dify.prompts) == 1
    assert dify.texts == ["The customer's shop uses PostgreSQL.", "Write to the customer, do not call."]


def test_when_it_was_so_and_when_it_was_learned_are_apart(dify: Dify) -> None:
    """A fact of last year that is told today is recorded today."""
    answer = dify.remember("I moved to Turku last May", listed(fact("Lives in Turku.", when="2023-05-01")))

    memory = answer["memories"][0]
    assert memory["occurred_at"].startswith("2023-05-01")
    recorded = datetime.fromisoformat(memory["recorded_at"])
    assert abs((datetime.now(UTC) - recorded).total_seconds()) < 600


@pytest.mark.parametrize("said", ["yesterday", "昨天", "gestern"])
def test_yesterday_is_the_day_before_the_message_was_sent(dify: Dify, said: str) -> None:
    """Not the day before it was processed, and in the customer's zone."""
    answer = dify.remember(
        "I moved",
        listed(fact("Moved house.", kind="episodic", when=said)),
        occurred_at="2024-03-02T10:00:00+08:00",
        timezone="Asia/Shanghai",
    )

    assert answer["memories"][0]["occurred_at"] == "2024-03-01T02:00:00Z"


@pytest.mark.parametrize("content", ["Hi", "thanks!", [{"role": "user", "content": "ok 👍"}]])
def test_nothing_to_keep_is_a_normal_answer(dify: Dify, content: Any) -> None:
    """Greetings leave nothing, and the call says so."""
    answer = dify.remember(content, listed())

    assert (answer["stored"], answer["duplicates"], answer["skipped"], answer["memories"]) == (0, 0, 0, [])
    assert answer.text.startswith("Stored 0 memories")
    assert dify.texts == []


def test_recalled_memories_fed_back_store_nothing_new(dify: Dify) -> None:
    """A fact that is known comes back as a duplicate, however often the flow feeds it back."""
    stated = listed(fact("Likes jasmine tea.", attribute="drink"), fact("Met us at a fair in Lyon."))
    dify.remember("I like jasmine tea. We met in Lyon.", stated)
    context = dify.nodes.recall("tea", customer_id=ADA)["context"]
    answer = dify.remember(context, stated)

    assert (answer["stored"], answer["duplicates"]) == (0, 2)
    assert len(dify.history) == 2


def test_an_agents_words_are_never_facts(dify: Dify) -> None:
    """What the model takes from them is left out, and they are marked as context in the prompt."""
    answer = dify.remember(
        CHAT,
        listed(
            fact("The customer is on the Pro plan.", attribute="plan", message=1),
            fact("Write to the customer, do not call.", kind="procedural", message=2),
        ),
    )

    assert [(m["action"], m.get("reason")) for m in answer["memories"]] == [
        ("created", None),
        ("skipped", "not_the_customers_words"),
    ]
    assert dify.texts == ["Write to the customer, do not call."]
    assert " AGENT (context only): Great. You could try the Pro plan." in dify.prompts[0]


def test_a_conversation_without_the_customer_is_not_asked_about(dify: Dify) -> None:
    """An agent alone says nothing about the customer, so no tokens are spent."""
    answer = dify.remember([{"role": "assistant", "content": "You could try the Pro plan"}])

    assert (answer["stored"], answer["tokens"], dify.prompts) == (0, 0, [])


def test_a_bad_item_is_skipped_and_told_and_the_others_are_kept(dify: Dify) -> None:
    """Missing fields, unknown numbers, other people, low confidence: each with its reason."""
    answer = dify.remember(
        "I use PostgreSQL. My sister uses Oracle.",
        listed(
            {"text": "Lacks everything."},
            fact("Unknown message.", message=7),
            fact("Unknown slot.", slot=1),
            fact("Her sister uses Oracle.", about_customer=False),
            fact("Perhaps likes teal.", confidence=0.3),
            fact("Likes nothing.", confidence=2),
            fact("Uses PostgreSQL.", attribute="database"),
        ),
    )

    assert (answer["stored"], answer["skipped"]) == (1, 6)
    assert [m["reason"] for m in answer["memories"] if m["action"] == "skipped"] == [
        "malformed",
        "unknown_message",
        "unknown_slot",
        "about_somebody_else",
        "low_confidence",
        "malformed",
    ]
    assert dify.texts == ["Uses PostgreSQL."]


def test_how_sure_a_fact_has_to_be_is_a_setting(dify: Dify) -> None:
    """With a lower bound an unsure fact is kept."""
    strict, dify.nodes = (
        dify.nodes,
        Nodes(dify.nodes.process, {**dify.nodes.credentials, "min_confidence": "0.2"}),
    )
    unsure = listed(fact("Perhaps likes teal.", confidence=0.3))
    assert dify.remember("Teal, maybe", unsure)["stored"] == 1

    dify.nodes = strict
    assert dify.remember("Blue, maybe", listed(fact("Likes blue.", confidence=0.3)))["stored"] == 0


def test_facts_stay_in_the_customers_language(dify: Dify) -> None:
    """A Chinese fact is stored, found and shown in Chinese."""
    answer = dify.remember(
        "你好，我是 Foy，上个月搬到了上海",
        listed(fact("客户名叫 Foy。", attribute="name"), fact("客户住在上海。")),
    )

    assert answer["stored"] == 2
    assert dify.nodes.texts("你知道我叫什麼名字嗎", customer_id=ADA)[0] == "客户名叫 Foy。"
    assert "客户住在上海。" in dify.nodes.recall("上海", customer_id=ADA)["context"]
    assert "我是 Foy" in dify.prompts[0]


def test_the_models_own_words_are_redacted_too(dify: Dify) -> None:
    """A secret the model puts together is no more stored than one the customer wrote."""
    number = "4111 1111 " + "1111 1111"
    dify.remember("My card is in the picture", listed(fact(f"The card is {number}.", attribute="card")))

    assert dify.texts == ["The card is [card ending 1111]."]


def test_redaction_is_told_and_comes_before_the_language_model(dify: Dify) -> None:
    """The prompt holds the mark, and the answer says what was replaced."""
    answer = dify.remember("My password is " + "hunter2" + ", hello", listed())

    assert answer["redacted"] == {"password": 1}
    assert "hunter2" not in dify.prompts[0]
    assert "[password]" in dify.prompts[0]


def test_as_it_is_asks_no_language_model(dify: Dify) -> None:
    """Without extraction everything still works, whatever the selector holds."""
    assert dify.remember("Likes teal", mode="as_is")["stored"] == 1
    assert (dify.prompts, dify.texts) == ([], ["Likes teal"])


# --- what changes -------------------------------------------------------------------------------


def test_a_correction_names_what_it_replaced(dify: Dify) -> None:
    """The slot is shown to the model by number; the older value is history with an end."""
    first = dify.remember("I love Chinese food", listed(fact("Loves Chinese food.", attribute="food")))
    second = dify.remember("I hate Chinese food", listed(fact("Hates Chinese food.", slot=1)))

    replaced = first["memories"][0]["memory_id"]
    assert second["memories"][0]["supersedes"] == [replaced]
    assert (second["stored"], second["superseded"]) == (1, 1)
    assert dify.texts == ["Hates Chinese food."]
    old = next(m for m in dify.history if m["memory_id"] == replaced)
    assert old["superseded_by"] == second["memories"][0]["memory_id"]
    assert old["superseded_at"] == second["memories"][0]["occurred_at"]
    assert "1. food: Loves Chinese food." in dify.prompts[1]
    assert replaced not in dify.prompts[1]


def test_the_newest_holds_also_when_it_is_told_first(dify: Dify) -> None:
    """A late arrival is stored as history at once."""
    dify.remember("Now 5 mg", listed(fact("Takes 5 mg.", attribute="dose", when="2024-06-01")))
    late = dify.remember("It was 10 mg", listed(fact("Takes 10 mg.", attribute="dose", when="2024-01-01")))

    assert late["memories"][0]["action"] == "superseded"
    assert dify.texts == ["Takes 5 mg."]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The deadline is October 15.", "The deadline is October 16."),
        ("Takes 10 mg.", "Takes 5 mg."),
        ("Deployment is allowed.", "Deployment is not allowed."),
    ],
)
def test_similar_is_not_the_same(dify: Dify, first: str, second: str) -> None:
    """A number or a "not" makes another value, which is stored and wins."""
    dify.remember("First", listed(fact(first, attribute="it")))
    answer = dify.remember("Second", listed(fact(second, slot=1)))

    assert (answer["stored"], answer["duplicates"]) == (1, 0)
    assert dify.texts == [second]


def test_two_facts_of_one_shape_stay_beside_each_other(dify: Dify) -> None:
    """Two people in two positions are two facts."""
    dify.remember(
        "Alice is our CEO, Sarah our CTO",
        listed(
            fact("Alice is CEO of Acme.", subject="Acme", attribute="CEO"),
            fact("Sarah is CTO of Acme.", subject="Acme", attribute="CTO"),
        ),
    )

    assert dify.texts == ["Alice is CEO of Acme.", "Sarah is CTO of Acme."]


def test_a_withdrawn_value_ends_without_a_successor(dify: Dify) -> None:
    """It is history, the one before it does not return, and a later value starts anew."""
    dify.remember("Basic", listed(fact("Is on Basic.", attribute="plan", when="2024-01-01")))
    dify.remember("Pro", listed(fact("Is on Pro.", slot=1, when="2024-02-01")))
    ended = dify.remember(
        "I cancelled it", listed(fact("Has no plan any more.", slot=1, still_true=False, when="2024-03-01"))
    )

    assert ended["memories"][0]["action"] == "ended"
    assert (ended["stored"], len(ended["memories"][0]["supersedes"])) == (0, 1)
    assert dify.texts == []
    by_text = {m["text"]: m for m in dify.history}
    assert by_text["Is on Pro."]["superseded_at"].startswith("2024-03-01")
    assert by_text["Is on Pro."]["superseded_by"] == ""
    assert not by_text["Is on Basic."]["is_current"]
    assert "Known values" not in _asked_next(dify)
    dify.remember("Team", listed(fact("Is on Team.", attribute="plan")))
    assert dify.texts == ["Is on Team."]


def _asked_next(dify: Dify) -> str:
    """The prompt of one more call that keeps nothing."""
    dify.remember("Hello", listed())
    return dify.prompts[-1]


def test_a_superseded_value_does_not_return_when_the_newer_is_forgotten(dify: Dify) -> None:
    """The slot is empty then, and is not shown to the model as known."""
    dify.remember("Basic", listed(fact("Is on Basic.", attribute="plan")))
    newer = dify.remember("Pro", listed(fact("Is on Pro.", slot=1)))
    dify.nodes.forget(
        customer_id=ADA, action="delete", memory_ids=[m["memory_id"] for m in newer["memories"]]
    )

    assert dify.texts == []
    assert "Known values" not in _asked_next(dify)


def test_a_rule_that_is_withdrawn_is_not_kept_as_a_rule(dify: Dify) -> None:
    """What the customer wants no longer is never told to a prompt as a wish."""
    answer = dify.remember(
        "You need not call before noon any more",
        listed(fact("Wants a call before noon.", kind="procedural", attribute="calls", still_true=False)),
    )

    assert (answer["stored"], dify.texts) == (0, [])


def test_a_value_copied_within_one_answer_is_gone_once_it_changes(dify: Dify) -> None:
    """The model may say the same twice; one record holds it, and none after the change."""
    basic = fact("Is on Basic.", attribute="plan")
    dify.remember("Basic", listed(basic, basic))
    dify.remember("Pro", listed(fact("Is on Pro.", slot=1)))

    assert dify.texts == ["Is on Pro."]
    assert len(dify.history) == 2


@pytest.mark.parametrize("when", [None, "2024-03-02T10:00:00Z"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_values_the_later_message_holds_in_whatever_order_the_model_lists_them(
    dify: Dify, when: str | None, order: tuple[int, int]
) -> None:
    """A customer who corrects himself within one conversation is understood."""
    said = [{"role": "user", "content": text} for text in ("I am on Basic", "Sorry, I am on Pro")]
    facts = [
        fact("Is on Basic.", attribute="plan", message=0),
        fact("Is on Pro.", attribute="plan", message=1),
    ]
    dify.remember(said, listed(*(facts[i] for i in order)), occurred_at=when)

    assert dify.texts == ["Is on Pro."]


def test_a_call_that_is_sent_again_changes_nothing(dify: Dify) -> None:
    """A retry with the same answer of the model gives the same records."""
    answer = listed(
        fact("Is on Basic.", attribute="plan"), fact("Likes teal."), fact("Came.", kind="episodic")
    )
    given = {"occurred_at": "2024-03-02", "conversation_id": "conv-1"}
    assert dify.remember("Basic", answer, **given)["stored"] == 3

    assert dify.remember("Basic", answer, **given)["duplicates"] == 3
    assert len(dify.history) == 3


def test_a_slot_set_by_hand_is_known_to_the_model(dify: Dify) -> None:
    """As it is and extracted memories share their slots."""
    dify.nodes.remember("Is on Basic.", customer_id=ADA, attribute="Plan")
    dify.remember("Pro", listed(fact("Is on Pro.", attribute="plan")))

    assert "1. Plan: Is on Basic." in dify.prompts[0]
    assert dify.texts == ["Is on Pro."]


def test_another_customers_slots_are_not_shown(dify: Dify) -> None:
    """A prompt is about one customer."""
    dify.nodes.remember("Is on Basic.", customer_id="grace@example.com", attribute="plan")
    dify.remember("Hello", listed())

    assert "Basic" not in dify.prompts[0]
    assert "grace" not in dify.prompts[0]
    assert ADA not in dify.prompts[0]


# --- broken answers and failures ----------------------------------------------------------------

TEAL = fact("Likes teal.")


@pytest.mark.parametrize(
    "answer",
    [
        f"```json\n{listed(TEAL)}\n```",
        f"Here you are:\n{listed(TEAL)}\nAnything else?",
        f'<think>{{"facts": [{{"text": "wrong"}}]}}</think>{listed(TEAL)}',
        listed(TEAL)[:-2] + ",]}",
        json.dumps([TEAL]),
        json.dumps(TEAL),
    ],
    ids=["fence", "prose", "thinking", "trailing comma", "bare list", "single object"],
)
def test_a_broken_answer_is_understood(dify: Dify, answer: str) -> None:
    """Small mistakes of a model cost no fact and no second call."""
    assert dify.remember("Teal!", answer)["stored"] == 1
    assert (dify.texts, len(dify.prompts)) == (["Likes teal."], 1)


def test_an_answer_that_was_cut_off_keeps_its_whole_facts(dify: Dify) -> None:
    """The facts before the cut are stored; the half one is not."""
    whole = listed(TEAL, fact("Drives a van."), fact("Lives in Turku."))
    dify.remember("A lot", whole[: whole.index("Turku")])

    assert dify.texts == ["Drives a van.", "Likes teal."]


def test_after_nonsense_the_model_is_asked_once_more(dify: Dify) -> None:
    """Both answers are paid for, and told."""
    answer = dify.remember("Teal!", "I found that she likes teal.", listed(TEAL))

    assert (answer["stored"], answer["tokens"], len(dify.prompts)) == (1, 20, 2)


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ((RuntimeError("429 Too Many Requests: quota for key abc-123"),), "language_model_failed"),
        ((RuntimeError("content filter: the prompt was flagged"),), "language_model_failed"),
        ((RuntimeError("Read timed out. (read timeout=60)"),), "language_model_failed"),
        (("",), "language_model_failed"),
        ((" \n ",), "language_model_failed"),
        (("No.", "I will not."), "extraction_failed"),
        (('{"error": "overloaded"}', "<think>hm"), "extraction_failed"),
        (("No.", RuntimeError("429")), "language_model_failed"),
    ],
    ids=[
        "429",
        "filter",
        "time-out",
        "empty",
        "blank",
        "nonsense twice",
        "an error as JSON",
        "nonsense then 429",
    ],
)
def test_a_failure_is_visible_can_be_retried_and_stores_nothing(
    dify: Dify, answers: tuple[str | Exception, ...], code: str
) -> None:
    """Never an empty success; the same call succeeds once the model answers."""
    dify.remember("Basic", listed(fact("Is on Basic.", attribute="plan")))
    failure = dify.failure("I am on Pro now", *answers)

    assert failure.code == code
    assert "Trying again later may help." in failure.message
    assert "abc-123" not in json.dumps(failure.raw)
    assert "I am on Pro" not in json.dumps(failure.raw)
    assert dify.texts == ["Is on Basic."]
    assert dify.remember("I am on Pro now", listed(fact("Is on Pro.", slot=1)))["stored"] == 1


def test_a_failed_first_call_leaves_no_link(dify: Dify) -> None:
    """A conversation is linked by what is stored in it, not by a try."""
    dify.failure("Hello", RuntimeError("429"), conversation_id="conv-1")

    answer = dify.nodes.recall("", conversation_id="conv-1")
    assert (answer["found"], answer["linked"]) == (0, False)


def test_without_a_language_model_extraction_says_what_to_set(dify: Dify) -> None:
    """It is the administrator's to mend, not to retry, and nothing is kept as it is instead."""
    failure = dify.failure("Hello", llm=None)

    assert failure.code == "language_model_missing"
    assert "Trying again" not in failure.message
    assert dify.texts == []


# --- a service of OpenAI's protocol -------------------------------------------------------------


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A language model's service with an empty script and a key."""
    with ChatServer(key="a-key") as server:
        yield server


@pytest.fixture
def served(process: PluginProcess, credentials: Json, chat: ChatServer) -> Nodes:
    """The nodes with the service in the form."""
    form = {"llm_base_url": chat.url, "llm_model": "test-chat", "llm_api_key": "a-key"}
    return Nodes(process, {**credentials, **form})


def extract(nodes: Nodes, content: Any = "Teal!", **parameters: Any) -> Any:
    """Run a remember node that extracts with the service of the form."""
    return nodes.remember(content, **{"customer_id": ADA, "mode": "extract", **parameters})


def failure_of(call: Callable[[], object]) -> PluginFailure:
    """The failure a call ends with."""
    with pytest.raises(PluginFailure) as failure:
        call()
    return failure.value


def test_a_service_of_the_form_extracts(served: Nodes, chat: ChatServer) -> None:
    """The model and the key of the form are used, once, and its tokens are told."""
    chat.say(listed(fact("Likes teal.", attribute="colour")))
    answer = extract(served)

    assert (answer["stored"], answer["tokens"]) == (1, TOKENS)
    asked = chat.asked[0]
    assert (len(chat.asked), asked.model, asked.key) == (1, "test-chat", "a-key")
    assert "CUSTOMER" in asked.system
    assert "CUSTOMER: Teal!" in asked.user


def test_the_nodes_selector_beats_the_form(served: Nodes, chat: ChatServer, own_workspace: Workspace) -> None:
    """A model chosen on the node is meant."""
    own_workspace.script.extend([listed(TEAL)])

    assert extract(served, llm=LLM)["stored"] == 1
    assert chat.asked == []


def test_asked_to_slow_down_it_tries_again_and_then_succeeds(served: Nodes, chat: ChatServer) -> None:
    """429 with a time to wait, and a passing 500, cost nothing but another try."""
    chat.fail(429, headers={"Retry-After": "0"})
    chat.fail(500, headers={"Retry-After": "0"})
    chat.say(listed(TEAL))

    assert extract(served)["stored"] == 1
    assert len(chat.asked) == 3


def test_nonsense_then_a_list_is_understood(served: Nodes, chat: ChatServer) -> None:
    """The second answer counts, both are paid for."""
    chat.say("Hello!", listed(TEAL))

    assert extract(served)["tokens"] == 2 * TOKENS


def _fails(status: int) -> Callable[[ChatServer], None]:
    return lambda chat: chat.fail(status, 10, headers={"Retry-After": "0"})


@pytest.mark.parametrize(
    ("trouble", "code", "retryable"),
    [
        (_fails(429), "language_model_rate_limited", True),
        (_fails(500), "language_model_failed", True),
        (_fails(503), "language_model_failed", True),
        (_fails(401), "language_model_refused", False),
        (_fails(404), "language_model_refused", False),
        (lambda chat: chat.hold_back(), "language_model_failed", True),
        (lambda chat: chat.hold_back(listed(TEAL)), "language_model_failed", True),
        (lambda chat: chat.say_nothing(), "language_model_failed", True),
        (lambda chat: chat.say(""), "language_model_failed", True),
        (lambda chat: chat.say("No.", "Still no."), "extraction_failed", True),
    ],
    ids=[
        "429",
        "500",
        "503",
        "401",
        "404",
        "filter",
        "filter after a list",
        "no text",
        "empty",
        "nonsense twice",
    ],
)
def test_trouble_of_the_service_is_a_failure_and_stores_nothing(
    served: Nodes, chat: ChatServer, trouble: Callable[[ChatServer], None], code: str, retryable: bool
) -> None:
    """Each has its code, says whether to retry, and repeats neither key nor words."""
    chat.repeats_input = True
    trouble(chat)
    failure = failure_of(lambda: extract(served, "I like teal and SECRET words"))

    assert failure.code == code
    assert ("Trying again later" in failure.message) is retryable
    assert "SECRET" not in json.dumps(failure.raw)
    assert "a-key" not in json.dumps(failure.raw)
    assert served.texts("", customer_id=ADA) == []
    chat.forget_script()
    chat.say(listed(TEAL))
    assert extract(served)["stored"] == 1


def test_a_service_nobody_listens_at_is_told(served: Nodes) -> None:
    """The address is wrong or the service is down."""
    with ChatServer() as gone:
        address = gone.url
    nowhere = Nodes(served.process, {**served.credentials, "llm_base_url": address})

    assert failure_of(lambda: extract(nowhere)).code == "language_model_unreachable"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"llm_base_url": "ftp://llm.example.com"}, "llm_base_url"),
        ({"llm_model": ""}, "llm_model"),
        ({"min_confidence": "2"}, "min_confidence"),
        ({"min_confidence": "sure"}, "min_confidence"),
        ({"redact": "passwords, and so on"}, "redact"),
        ({"retention_days_episodic": "-1"}, "retention_days_episodic"),
        ({"retention_days_semantic": "soon"}, "retention_days_semantic"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(served: Nodes, fields: Json, name: str) -> None:
    """The administrator reads which field it is."""
    failure = failure_of(lambda: extract(Nodes(served.process, {**served.credentials, **fields})))

    assert (failure.code, name in failure.message) == ("setting_invalid", True)
