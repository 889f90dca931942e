"""Random calls for customers with hostile ids, by six workers through two plugin processes, against a model.

Nothing of another customer may ever be in an answer (a leak), nothing may be missing (a loss), and nothing
may be there that was forgotten (a ghost). Every answer is looked at as it comes; after every 500 calls the
whole memory is compared with the model, row by row of the store. Each worker has ten customers of its own,
so that the model can tell what is right though the calls of all run at once.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from urllib.parse import urlencode

from benchmarks.isolation_model import Model, Owner, Said
from development.chroma_server import ChromaServer
from development.daemon import Json, PluginProcess
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.namespace import Namespace
from memory.settings import ChromaSettings

CALLS, CALLS_A_ROUND = 20_000, 500
WORKERS, PROCESSES = 6, 2
KEY = "benchmark-key"
SLOTS = ("plan", "home", "% of load")
CASES = ("case-1", "case-10", "CASE-1")
WORDS = ("teal", "lamp", "bicycle", "delivery", "张伟喜欢茶", "refund", "morning", "Zoë", "invoice", "chair")


def hostile_ids(worker: int) -> list[str | int]:
    """Ten customers whose ids are as easily mistaken for each other, or for something else, as can be."""
    return [
        f"test_user{worker}",
        f"test_user{worker}1",
        f"Test_User{worker}",
        f"a{worker}%",
        f"../a{worker}/b:c?x=1&y=2#z",
        f"张伟{worker}👩🏽‍💻",
        "x" * 299 + str(worker),
        42_000 + worker,
        f"042{worker}",
        f'{worker}\'; DROP TABLE customers; -- {{"$ne": ""}}',
    ]


class Wrong(Exception):
    """An answer, or the store, is not what it has to be."""


def hold(is_right: bool, what: object) -> None:
    """Raise Wrong unless it is right."""
    if not is_right:
        raise Wrong(str(what)[:20_000])


class Worker:
    """Makes calls for its own customers and looks at each answer.

    Args:
        number: which worker.
        plugins: the processes, used in turn by chance.
        settings: of the endpoint, credentials included.
        seed: of the run.
    """

    def __init__(self, number: int, plugins: Sequence[PluginProcess], settings: Json, seed: int) -> None:
        self.number, self.model = number, Model()
        self.made: Counter[str] = Counter()
        self._plugins, self._settings = plugins, settings
        self._chance = Random(f"{seed}-{number}")
        self._customers = hostile_ids(number)
        # Conversations that are called as customers are, and as each other nearly.
        self._conversations = [*map(str, self._customers[:5]), *(f"conv {number}/{i}" for i in range(7))]
        self._calls = 0
        self._log: list[str] = []
        self._forgotten: list[str] = []
        self._sent: dict[str, tuple[str, dict[str, tuple[str, int]]]] = {}
        """Tickets as they were sent last: the customer, and of each text when it was and in which call."""
        self._verbs: list[tuple[int, Callable[[], None]]] = [
            (24, self._remember),
            (14, self._remember_value),
            (4, self._remember_again),
            (2, self._remember_forgotten),
            (16, self._recall),
            (8, self._list),
            (6, self._preview),
            (8, self._forget_by_id),
            (2, self._forget_conversation),
            (2, self._forget_case),
            (1, self._forget_everything),
            (7, self._link),
            (10, self._import),
            (2, self._import_forgotten),
            (1, self._forget_ticket),
            (2, self._merge),
            (2, self._undo),
        ]

    def run(self, calls: int) -> None:
        """Make that many calls.

        Raises:
            Wrong: an answer was not what it has to be; the last calls are told.
        """
        weights = [weight for weight, _ in self._verbs]
        for _ in range(calls):
            self._calls += 1
            verb = self._chance.choices(self._verbs, weights)[0][1]
            try:
                verb()
            except Exception as error:
                told = "\n".join(self._log[-25:])
                raise Wrong(f"worker {self.number}, call {self._calls}: {error}\n{told}") from error

    # --- writing ---------------------------------------------------------------------------------

    def _remember(self) -> None:
        customer, conversation = self._somebody()
        case = self._chance.choice(["", "", *CASES])
        said = Said(self._text(customer), self._calls, case=case)
        self._tell(said, customer, conversation, case_id=case)

    def _remember_value(self) -> None:
        customer, conversation = self._somebody()
        slot = self._chance.choice(SLOTS)
        # Times come in any order, none twice.
        moment = self._chance.randrange(1_000) * 100_000 + self._calls
        said = Said(self._text(customer), self._calls, slot, moment)
        self._tell(said, customer, conversation, attribute=slot, occurred_at=1_000_000_000 + moment)

    def _tell(self, said: Said, customer: Any, conversation: str, **more: Any) -> None:
        self._note("remember", said.text, customer, conversation, more)
        answer = self._call("remember", {"content": said.text, **self._ids(customer, conversation), **more})
        self.model.remember(said, str(customer), conversation)
        hold(answer["stored"] == 1, answer)
        hold(answer["customer_id"] == self._name(self.model.owner(str(customer), conversation)), answer)

    def _remember_again(self) -> None:
        owner, customer = self._known()
        plain = [s.text for s in self.model.of(owner).values() if not s.slot and not s.ticket]
        if plain:
            text = self._chance.choice(plain)
            self._note("again", text, customer)
            answer = self._call("remember", {"content": text, "customer_id": customer})
            hold((answer["stored"], answer["duplicates"]) == (0, 1), answer)

    def _remember_forgotten(self) -> None:
        """What was forgotten is said again, and has the id it had."""
        if self._forgotten:
            customer, conversation = self._somebody()
            self._tell(Said(self._forgotten.pop(), self._calls), customer, conversation)

    def _link(self) -> None:
        customer, conversation = (
            self._chance.choice(self._customers),
            self._chance.choice(self._conversations),
        )
        case = self._chance.choice(["", *CASES])
        self._note("link", customer, conversation, case)
        ids = {"customer_id": customer, "conversation_id": conversation, "case_id": case, "relink": True}
        answer = self._call("link_conversation", ids)
        self.model.link(str(customer), conversation, case, self._calls)
        hold(answer["customer_id"] == self.model.links[conversation].customer, answer)

    def _import(self) -> None:
        fresh = [t for t, entry in self.model.tickets.items() if not entry.is_spent]
        again = bool(fresh) and self._chance.random() < 0.5
        name = self._chance.choice(fresh) if again else f"{self.number}-{self._calls}"
        entry = self.model.tickets.get(name)
        customer = str(self._alias_of(entry.customer) if entry else self._chance.choice(self._customers))
        written = self._messages(customer)
        is_same = entry is not None and self._chance.random() < 0.4
        if is_same:
            written = self._sent[name][1]
        is_restored = self._chance.random() < 0.2
        # What is there already is looked at again where what was forgotten is asked for.
        self._send_ticket(name, customer, written, is_same=is_same, is_restored=is_restored)

    def _import_forgotten(self) -> None:
        """A ticket that was forgotten as a whole is sent again, as it was."""
        gone = sorted(self.model.gone.keys() - self.model.tickets.keys())
        if gone:
            name = self._chance.choice(gone)
            customer, written = self._sent[name]
            self._send_ticket(name, customer, written, is_restored=self._chance.random() < 0.3)

    def _messages(self, customer: str) -> dict[str, tuple[str, int]]:
        """Messages to import: some were written long ago, the rest just now."""
        texts = [self._text(customer) for _ in range(self._chance.randint(1, 3))]
        olds = self._chance.randint(0, len(texts))
        now = datetime.now(UTC)
        moments = [(f"2025-0{i + 1}-01T10:00:00Z", 0) for i in range(olds)]
        moments += [((now + timedelta(milliseconds=i)).isoformat(), self._calls) for i in range(3)]
        return dict(zip(texts, moments, strict=False))

    def _send_ticket(
        self,
        name: str,
        customer: str,
        written: dict[str, tuple[str, int]],
        *,
        is_same: bool = False,
        is_restored: bool = False,
    ) -> None:
        self._note("import", name, customer, tuple(written), is_restored)
        messages = [
            {"message_id": str(i), "role": "customer", "created_at": moment, "text": text}
            for i, (text, (moment, _)) in enumerate(written.items())
        ]
        sent = {"source": "fuzz", "ticket_id": name, "customer_id": customer, "messages": messages}
        query = "?restore=true" if is_restored else ""
        report = self._send("POST", f"/tickets/import{query}", {"tickets": [sent]})
        told = report["tickets"]
        calls = {text: at for text, (_, at) in written.items()}
        texts = tuple(written) if is_restored else self.model.admitted(name, customer, calls)
        # The customer's id is part of what a ticket says: under an alias it is written again.
        if told["unchanged"]:
            hold(is_same, report)
            return
        conversation = f"fuzz:{name}"
        is_others = bool(texts) and self.model.is_of_another(name, conversation, customer)
        is_told = bool(texts) and not is_others
        hold(told["forgotten"] == (0 if texts else 1), (report, texts))
        hold(told["failed"] == is_others, (report, texts))
        hold(told["imported"] + told["replaced"] == is_told, (report, texts))
        if is_told:
            self._sent[name] = (customer, written)
            self.model.tell_ticket(name, conversation, customer, texts, self._calls, is_restored=is_restored)

    # --- reading ---------------------------------------------------------------------------------

    def _recall(self) -> None:
        customer, conversation = self._somebody()
        owner = self.model.owner(str(customer), conversation)
        known = self.model.shown(owner)
        sought = self._chance.choice([*known, self._chance.choice(WORDS), ""])
        self._note("recall", sought, customer, conversation)
        asked = {"query": sought, "limit": 100, "min_score": 0, "include_superseded": True}
        answer = self._call("recall", {**asked, **self._ids(customer, conversation)})
        found = {m["text"]: m["is_current"] for m in answer["memories"]}
        self._look(owner, found)
        hold(len(found) == answer["found"] == min(100, len(known)), (answer["found"], len(known)))
        hold(sought not in known or sought == answer["memories"][0]["text"], sought)
        others = [f"W{number}C" for number in range(WORKERS) if number != self.number]
        hold(
            not any(marker in answer["context"] for marker in others), "a leak into the block for the prompt"
        )

    def _list(self) -> None:
        customer = self._chance.choice(self._customers)
        self._note("list", customer)
        self._check_listing(customer)

    def _preview(self) -> None:
        customer, conversation = self._somebody()
        owner = self.model.owner(str(customer), conversation)
        asked = self._chance.choice([{"scope": "everything"}, {"query": self._chance.choice(WORDS)}])
        self._note("preview", asked, customer, conversation)
        answer = self._call("forget", {**asked, **self._ids(customer, conversation)})
        found = {m["text"]: m["is_current"] for m in answer["receipt"]["memories"]}
        self._look(owner, found)
        hold("scope" not in asked or answer["matched"] == len(self.model.of(owner)), answer["matched"])

    # --- forgetting ------------------------------------------------------------------------------

    def _forget_by_id(self) -> None:
        owner, customer = self._known()
        listed = self._pages(customer)
        going = self._chance.sample(listed, min(len(listed), self._chance.randint(1, 3)))
        self._note("forget", [m["text"] for m in going], customer)
        stranger = self._chance.choice(["0" * 32, "f" * 32])
        ids = [*(m["memory_id"] for m in going), stranger]
        answer = self._delete({"memory_ids": ",".join(ids), "customer_id": customer})
        texts = {m["text"] for m in going}
        self._forgotten += [
            s.text for s in self.model.of(owner).values() if s.text in texts and not (s.slot or s.ticket)
        ]
        hold(answer["deleted"] == self.model.forget(owner, lambda s: s.text in texts, is_by_id=True), answer)
        hold(answer["receipt"]["not_found"] == [stranger], answer)

    def _forget_conversation(self) -> None:
        conversation = self._chance.choice(self._conversations)
        owner = self.model.owner("", conversation)
        self._note("forget conversation", conversation)
        answer = self._delete({"conversation_id": conversation})
        hold(answer["deleted"] == self.model.forget(owner, lambda s: s.conversation == conversation), answer)

    def _forget_case(self) -> None:
        owner, customer = self._known()
        case = self._chance.choice(CASES)
        self._note("forget case", case, customer)
        answer = self._delete({"case_id": case, "customer_id": customer})
        hold(answer["deleted"] == self.model.forget(owner, lambda s: s.case == case), answer)

    def _forget_everything(self) -> None:
        customer, conversation = self._somebody()
        owner = self.model.owner(str(customer), conversation)
        self._note("forget everything", customer, conversation)
        answer = self._delete({"everything": "true", **self._ids(customer, conversation)})
        hold(answer["deleted"] == self.model.forget_everything(owner, self._calls), answer)

    def _forget_ticket(self) -> None:
        fresh = [t for t, entry in self.model.tickets.items() if not entry.is_spent]
        if fresh:
            name = self._chance.choice(fresh)
            self._note("forget ticket", name)
            answer = self._send("DELETE", "/tickets?" + urlencode({"source": "fuzz", "ticket_id": name}))
            hold(answer["verified"], answer)
            self.model.forget_ticket(name, self._calls)

    # --- merging ---------------------------------------------------------------------------------

    def _merge(self) -> None:
        free = [c for c in self._customers if str(c) not in self.model.merged]
        if len(free) < 4:
            return
        customer, into = self._chance.sample(free, 2)
        named = self._alias_of(str(into))
        preview = self._send("POST", "/merge", {"from": customer, "into": named})
        answer = self._send("POST", "/merge", {"from": customer, "into": named, "dry_run": False})
        self._note("merge", customer, named, answer["merge_id"])
        hold(
            (answer["memories"], answer["shared"]) == (len(self.model.of(("customer", str(customer)))), 0),
            "unexpected",
        )
        hold(
            [preview[k] for k in ("kinds", "links", "tickets")]
            == [answer[k] for k in ("kinds", "links", "tickets")],
            "unexpected",
        )
        self.model.merge(str(customer), str(into), answer["merge_id"], self._calls)

    def _undo(self) -> None:
        if not self.model.merged:
            return
        customer = self._chance.choice(sorted(self.model.merged))
        merge_id = self.model.merged[customer].merge_id
        is_last = self.model.can_undo(customer)
        self._note("undo", customer, is_last)
        answer = self._send("POST", "/merge/undo", {"merge_id": merge_id}, may_fail=not is_last)
        if is_last:
            self.model.undo(customer)
        else:
            hold(answer["error"]["code"] == "merge_conflict", answer)

    # --- the whole -------------------------------------------------------------------------------

    def check(self) -> set[str]:
        """Compare everything of the worker's customers with the model.

        Returns:
            All texts that have to be in the store.
        """
        for customer in self._customers:
            self._check_listing(customer)
            links = self._send("GET", "/links?" + urlencode({"customer_id": customer}))["links"]
            own = {link["conversation_id"] for link in links}
            right = self.model.conversations(str(customer))
            hold(own == right, (customer, "links", own ^ right, *self._log[-60:]))
        for conversation in self._conversations:
            owner = self.model.owner("", conversation)
            if owner[0] == "conversation":
                asked = {"conversation_id": conversation, "limit": 100, "include_superseded": True}
                answer = self._call("recall", asked)
                found = {m["text"]: m["is_current"] for m in answer["memories"]}
                self._look(owner, found)
                hold(len(found) == min(100, len(self.model.of(owner))), "unexpected")
        return {text for said in self.model.said.values() for text in said}

    def _check_listing(self, customer: str | int) -> None:
        owner = self.model.owner(str(customer))
        found = {m["text"]: m["is_current"] for m in self._pages(customer)}
        self._look(owner, found)
        hold(
            found == self.model.shown(owner),
            (
                customer,
                "lost",
                self.model.shown(owner).keys() - found.keys(),
            ),
        )

    def _look(self, owner: Owner, found: dict[str, bool]) -> None:
        """No text but the customer's own, each as current as it is."""
        known = self.model.shown(owner)
        strange = {text: is_current for text, is_current in found.items() if known.get(text) != is_current}
        elsewhere = {t for said in self.model.said.values() for t in said}
        kinds = {
            text: "mark" if text in known else "leak" if text in elsewhere else "ghost or leak"
            for text in strange
        }
        hold(not kinds, (owner, kinds))

    def _pages(self, customer: str | int) -> list[Json]:
        found: list[Json] = []
        cursor = ""
        while True:
            query = {"customer_id": customer, "limit": 500, "include_superseded": "true", "cursor": cursor}
            page = self._send("GET", "/memories?" + urlencode(query))
            found += page["memories"]
            cursor = page["cursor"] or ""
            if not cursor:
                return found

    # --- plumbing --------------------------------------------------------------------------------

    def _somebody(self) -> tuple[Any, str]:
        """A customer, a conversation, or both where they belong together or the conversation is free."""
        customer, conversation = (
            self._chance.choice(self._customers),
            self._chance.choice(self._conversations),
        )
        which = self._chance.random()
        if which < 0.5:
            return customer, ""
        if which < 0.75:
            return "", conversation
        link = self.model.links.get(conversation)
        return (self._alias_of(link.customer) if link else customer), conversation

    def _known(self) -> tuple[Owner, Any]:
        """A customer."""
        customer = self._chance.choice(self._customers)
        return self.model.owner(str(customer)), customer

    def _alias_of(self, customer: str) -> Any:
        """One of the ids a customer answers to."""
        ids = [c for c in self._customers if self.model.answering(str(c)) == customer]
        return self._chance.choice(ids)

    def _name(self, owner: Owner) -> str:
        return owner[1] if owner[0] == "customer" else ""

    def _ids(self, customer: Any, conversation: str) -> Json:
        ids = {"customer_id": customer, "conversation_id": conversation}
        return {name: value for name, value in ids.items() if value != ""}

    def _text(self, customer: Any) -> str:
        """A text that says whose it was first, and is nobody else's."""
        place = [str(c) for c in self._customers].index(str(customer)) if customer != "" else 99
        words = " ".join(self._chance.sample(WORDS, 3))
        return f"W{self.number}C{place}N{self._calls}.{self._chance.randrange(1_000)} {words}"

    def _note(self, verb: str, *what: object) -> None:
        self.made[verb] += 1
        self._log.append(f"{self._calls} {verb} {what}"[:400])

    def _call(self, node: str, parameters: Json) -> Any:
        """A node, or the endpoint that does the same."""
        if self._chance.random() < 0.7:
            given = {k: v for k, v in self._settings.items() if k != "api_key"}
            return self._chance.choice(self._plugins).tool(node, parameters, credentials=given).variables
        method, path = {
            "remember": ("POST", "/memories"),
            "recall": ("POST", "/recall"),
            "link_conversation": ("PUT", "/links"),
            "forget": ("DELETE", "/memories"),
        }[node]
        if node != "forget":
            return self._send(method, path, parameters)
        query = {k: v for k, v in parameters.items() if k != "scope"}
        if "scope" in parameters:
            query["everything"] = "true"
        return self._send(method, f"{path}?{urlencode(query)}")

    def _delete(self, query: Json) -> Any:
        return self._send("DELETE", "/memories?" + urlencode({**query, "dry_run": "false"}))

    def _send(self, method: str, path: str, body: Json | None = None, *, may_fail: bool = False) -> Any:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        plugin = self._chance.choice(self._plugins)
        answer = plugin.endpoint(method, path, settings=self._settings, body=content, headers=headers)
        hold(may_fail or answer.status == 200, (method, path, answer.status, answer.body[:300]))
        return answer.json()


class Run:
    """A run of all workers on a namespace of its own.

    Args:
        plugins: the processes.
        settings: Chroma's address and the namespace.
        seed: of all chance.
    """

    def __init__(self, plugins: Sequence[PluginProcess], settings: ChromaSettings, *, seed: int) -> None:
        self._settings = settings
        given: Json = {
            "api_key": KEY,
            "chroma_url": settings.base_url,
            "namespace": settings.namespace,
            "timeout_seconds": "240",  # a busy machine is no fault of the code
        }
        self.workers = [Worker(number, plugins, given, seed) for number in range(WORKERS)]

    def make(self, calls: int, told: Callable[[int], None] = lambda done: None) -> Counter[str]:
        """Make calls, with a check of everything after every 500.

        Args:
            calls: how many, of all workers together.
            told: is called with how many are done, after each check.

        Returns:
            How many there were of each kind.

        Raises:
            Wrong: something is wrong.
        """
        done = 0
        with ThreadPoolExecutor(WORKERS) as pool:
            while done < calls:
                size = min(CALLS_A_ROUND, calls - done)
                shares = [size // WORKERS + (n < size % WORKERS) for n in range(WORKERS)]
                list(pool.map(lambda pair: pair[0].run(pair[1]), zip(self.workers, shares, strict=True)))
                expected = set().union(*pool.map(Worker.check, self.workers))
                self._check_store(expected)
                done += size
                told(done)
        return sum((worker.made for worker in self.workers), Counter())

    def _check_store(self, expected: set[str]) -> None:
        """The texts in the store, whoever's they are, are those that have to be there, each once."""
        namespace = Namespace(Chroma(self._settings, Deadline.after(60.0)), self._settings)
        about = namespace.about()
        names = [namespace.memories(n, about.generation) for n in range(about.shards)] if about else []
        rows = [row for name in names for row in namespace.chroma.get(name)]
        texts = [row.text for row in rows if row.text and "erasure" not in row.columns]
        twice = [text for text, count in Counter(texts).items() if count > 1]
        hold(not twice, ("twice", twice[:5]))
        hold(set(texts) == expected, ("ghosts", set(texts) - expected, "lost", expected - set(texts)))


def main() -> None:
    """Run it and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    options = parser.parse_args()
    started = time.monotonic()
    with ExitStack() as stack:
        chroma = stack.enter_context(ChromaServer())
        plugins = [stack.enter_context(PluginProcess()) for _ in range(PROCESSES)]
        run = Run(plugins, ChromaSettings(url=chroma.url, namespace="fuzz"), seed=options.seed)
        made = run.make(
            options.calls,
            lambda done: print(f"{done:,} calls, {time.monotonic() - started:.0f} s", flush=True),
        )
    print(
        f"{sum(made.values()):,} calls, {WORKERS} workers, {PROCESSES} processes: no leak, no loss, no ghost"
    )
    print(", ".join(f"{verb} {count:,}" for verb, count in made.most_common()))
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
