"""Secrets leave no trace: a run of 200 messages, and then a look at every byte that was written or sent.

What looks like a secret is put together at run time, so that scanners of repositories stay quiet.
"""

import base64
import json
import random
import re
import sqlite3
import string
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from development.chat_server import ChatServer
from development.chroma_server import ChromaServer
from development.daemon import PluginProcess, Workspace
from development.embedding_server import EmbeddingServer
from memory.redaction import DEFAULT_TYPES, RedactionType
from tests.conftest import Json, Nodes
from tests.endpoints.conftest import KEY, Api, message, ticket

MESSAGES = 200
MAX_NAME_LENGTH = 100
"""Characters of a slot's name."""
LLM = {"provider": "p", "model": "m", "mode": "chat"}
EMBEDDING = {"provider": "p", "model": "embed-1"}
ALPHABET = string.ascii_letters + string.digits


# --- secrets ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Secret:
    """A secret and a sentence that gives it away.

    Attributes:
        kind: its type.
        value: itself, as it is written.
        sentence: what a customer or an agent says.
    """

    kind: RedactionType
    value: str
    sentence: str

    @property
    def needles(self) -> set[str]:
        """What must be found nowhere: it, its bare characters, and its larger pieces."""
        bare = re.sub(r"[\s-]", "", self.value)
        whole = {self.value, bare}
        pieces = {piece for piece in (bare, *self.value.split()) if len(piece) >= 16}
        return whole | {end for piece in pieces for end in (piece[:12], piece[-12:])}


def _card(chance: random.Random) -> str:
    digits = [4, *(chance.randrange(10) for _ in range(14))]
    doubled = [d * 2 - 9 * (d > 4) if i % 2 == 0 else d for i, d in enumerate(digits)]
    digits.append(-sum(doubled) % 10)
    text = "".join(map(str, digits))
    separator = chance.choice(["", " ", "-"])
    return separator.join(text[i : i + 4] for i in range(0, 16, 4))


def _iban(chance: random.Random) -> str:
    account = "".join(chance.choice(string.digits) for _ in range(18))
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"


def _letters(chance: random.Random, count: int) -> str:
    return "".join(chance.choice(ALPHABET) for _ in range(count))


def _api_key(chance: random.Random) -> str:
    return chance.choice(["sk" + "-proj-", "gh" + "p_"]) + _letters(chance, 36)


def _jwt(chance: random.Random) -> str:
    parts = [json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps({"sub": _letters(chance, 12)})]
    encoded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, _letters(chance, 43)])


def _private_key(chance: random.Random) -> str:
    body = "\n".join(_letters(chance, 64) for _ in range(4))
    name = "PRIVATE" + " KEY"
    return f"-----BEGIN {name}-----\n{body}\n-----END {name}-----"


def _ssn(chance: random.Random) -> str:
    return f"{chance.randrange(100, 600)}-{chance.randrange(10, 99)}-{chance.randrange(1000, 9999)}"


def _code(chance: random.Random) -> str:
    return "".join(chance.choice("123456789") for _ in range(8))


MAKERS: dict[RedactionType, tuple[Callable[[random.Random], str], tuple[str, ...]]] = {
    RedactionType.PAYMENT_CARD: (_card, ("Please charge my card {0} for it.", "我的卡号是{0}，谢谢")),
    RedactionType.CARD_SECURITY_CODE: (
        lambda chance: f"CVV is {chance.randrange(100, 999)}",
        ("The card is at home, its {0}.",),
    ),
    RedactionType.IBAN: (_iban, ("Refund it to {0}, please.", "请退款到 {0}")),
    RedactionType.PASSWORD: (
        lambda chance: "Hx" + _letters(chance, 9) + "7",
        ("My password is {0}, it does not work.", "我的密码是{0}，登录不了"),
    ),
    RedactionType.ONE_TIME_CODE: (_code, ("The verification code is {0}.", "验证码 {0}，对吗")),
    RedactionType.API_KEY: (_api_key, ("I call you with {0} and get 403.",)),
    RedactionType.TOKEN: (_jwt, ("It sends {0} and fails.",)),
    RedactionType.PRIVATE_KEY: (_private_key, ("This is the file:\n{0}\nIs it right?",)),
    RedactionType.US_SSN: (_ssn, ("My SSN is {0}.",)),
}


def secrets(count: int, seed: int) -> list[Secret]:
    """So many secrets, the types in turn."""
    chance = random.Random(seed)  # noqa: S311 - the same in every run
    kinds = sorted(MAKERS)
    made = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        make, sentences = MAKERS[kind]
        value = make(chance)
        made.append(Secret(kind, value, chance.choice(sentences).format(value)))
    return made


def test_there_is_a_secret_of_every_type_that_is_redacted_by_default() -> None:
    """A type that is added later has to be woven into the run below."""
    assert set(MAKERS) == DEFAULT_TYPES


# --- the run ------------------------------------------------------------------------------------


@dataclass
class Record:
    """Everything a run wrote and sent, by place, and what it hid.

    Attributes:
        places: bytes by the name of the place.
        hidden: the secrets that were woven in.
        contacts: the e-mails and phones that were, which support needs.
        redacted: how many secrets of each type the answers said were replaced.
    """

    places: dict[str, bytes] = field(default_factory=dict)
    hidden: list[Secret] = field(default_factory=list)
    contacts: list[str] = field(default_factory=list)
    redacted: dict[str, int] = field(default_factory=dict)

    def count(self, redacted: Json) -> None:
        """Add up what an answer says was replaced."""
        for kind, number in redacted.items():
            self.redacted[kind] = self.redacted.get(kind, 0) + number


PLACES = (
    "files of Chroma",
    "texts in Chroma's databases",
    "stdout",
    "stderr",
    "prompts of the workspace's model",
    "texts for the workspace's model",
    "prompts of the service",
    "texts for the service",
)


def _echo(prompt: str) -> str:
    """A language model that makes a fact of whatever it reads, word by word."""
    lines = re.findall(r"^\[(\d+)\] .*?(?:CUSTOMER): (.*)$", prompt, re.MULTILINE)
    facts = [
        {"text": text, "kind": "semantic", "attribute": f"line {n}", "confidence": 1, "message": int(n)}
        for n, text in lines
    ]
    return json.dumps({"facts": facts}, ensure_ascii=False)


class Echoing(Workspace):
    """A workspace whose language model repeats what it reads, and adds a secret of its own."""

    def __init__(self, own: list[Secret]) -> None:
        super().__init__()
        self._own = iter(own)

    def _completion(self, request: Json) -> tuple[str, str, Json | None]:
        facts = json.loads(_echo(request["prompt_messages"][1]["content"]))["facts"]
        secret = next(self._own)
        for one in facts[:1]:
            one |= {"text": f"{one['text']} {secret.sentence}"}
            if len(secret.sentence) < MAX_NAME_LENGTH:
                one |= {"attribute": secret.sentence, "subject": secret.sentence}
        self.script.append(json.dumps({"facts": facts}, ensure_ascii=False))
        return super()._completion(request)


class Run:
    """Two hundred messages through all the ways into the plugin, each with a secret and a contact."""

    def __init__(self, record: Record, made: list[Secret]) -> None:
        self._record = record
        self._made = iter(made)
        self._number = 0

    def said(self) -> str:
        """The next message: a secret, an e-mail and a phone, and something harmless."""
        secret = next(self._made)
        self._number += 1
        contacts = [f"person{self._number}@example.com", f"+49 30 9018{self._number:04d}"]
        self._record.hidden.append(secret)
        self._record.contacts += contacts
        return f"{secret.sentence}\nWrite to {contacts[0]} or call {contacts[1]}."

    def nodes(self, nodes: Nodes, **model: object) -> None:
        """Remember as it is and extracted, recall, forget: 50 messages."""
        ada: Json = {"customer_id": "ada@example.com", "conversation_id": "conv-1"}
        for _ in range(12):
            secret = next(self._made)
            self._record.hidden.append(secret)
            answer = nodes.remember(
                self.said(), metadata={"note": secret.sentence, "order": "A-4471"}, **ada, **model
            )
            self._record.count(answer["redacted"])
        for _ in range(4):
            talk = [{"role": role, "content": self.said()} for role in ("user", "assistant", "user")]
            self._record.count(nodes.remember(talk, **ada)["redacted"])
            spoken = [{"role": role, "content": self.said()} for role in ("user", "assistant")]
            self._record.count(nodes.remember(spoken, mode="extract", **ada, **model)["redacted"])
        secret = next(s for s in self._made if s.kind is RedactionType.PASSWORD)
        self._record.hidden.append(secret)
        nodes.remember("Is on Pro.", attribute=secret.sentence, customer_id="grace")
        for _ in range(4):
            nodes.recall(self.said(), include_superseded=True, **ada)
            preview = nodes.forget(query=self.said(), **ada)
            nodes.forget(memory_ids=preview["receipt"]["memory_ids"][:2], action="delete", **ada)

    def tickets(self, api: Api) -> None:
        """Import as it is and extracted, list, recall over HTTP: 50 messages."""
        for mode in ("as_is", "extract"):
            batch = []
            for number in range(5):
                secret = next(self._made)
                self._record.hidden.append(secret)
                messages = [
                    message(1, self.said()),
                    message(2, self.said(), role="agent"),
                    message(3, self.said()),
                    message(4, self.said(), role="agent"),
                ]
                subject = secret.sentence.replace("\n", " ")
                batch.append(ticket(f"{mode}{number}", f"c{number}", *messages, subject=subject))
            report = api.post(f"/tickets/import?mode={mode}", {"tickets": batch})
            assert report["problems"] == []
            self._record.count(report["redacted"])
        for _ in range(2):
            api.post("/recall", {"customer_id": "c1", "query": self.said()})
            api.post("/memories", {"customer_id": "c1", "content": self.said()})
        api.get("/memories?customer_id=c1&include_superseded=true")
        api.send("DELETE", "/memories?customer_id=c2&everything=true&dry_run=false")


@pytest.fixture(scope="module")
def record() -> Iterator[Record]:
    """The run, once with models of the workspace and once with services; everything it wrote and sent."""
    kept = Record()
    made = secrets(2 * MESSAGES, seed=1)
    own = made[MESSAGES + MESSAGES // 2 :]
    run = Run(kept, made[: MESSAGES + MESSAGES // 2])
    workspace = Echoing(own)
    with (
        ChromaServer() as chroma,
        EmbeddingServer() as embedding,
        ChatServer() as chat,
        PluginProcess(workspace=workspace) as process,
    ):
        chat.answers = _echo
        dify: Json = {"chroma_url": chroma.url, "namespace": "dify"}
        services: Json = {
            "chroma_url": chroma.url,
            "namespace": "services",
            "embedding_source": "openai_compatible",
            "embedding_base_url": embedding.url,
            "embedding_model": "test-embed",
            "llm_base_url": chat.url,
            "llm_model": "test-chat",
        }
        run.nodes(Nodes(process, dify), embedding_model=EMBEDDING, llm=LLM)
        run.tickets(Api(process, {**dify, "api_key": KEY, "embedding_model": EMBEDDING, "llm": LLM}))
        run.nodes(Nodes(process, services))
        run.tickets(Api(process, {**services, "api_key": KEY}))
        process.stop()
        chroma.stop()
        calls = [(call["type"], json.dumps(call, ensure_ascii=False)) for call in workspace.requests]
        kept.places = {
            "files of Chroma": _files(chroma.folder / "data"),
            "texts in Chroma's databases": _texts(chroma.folder / "data"),
            "stdout": "\n".join(process.stdout).encode(),
            "stderr": "".join(process.stderr).encode(),
            "prompts of the workspace's model": "\n".join(c for t, c in calls if t == "llm").encode(),
            "texts for the workspace's model": "\n".join(c for t, c in calls if t != "llm").encode(),
            "prompts of the service": "\n".join(asked.user for asked in chat.asked).encode(),
            "texts for the service": "\n".join(t for asked in embedding.asked for t in asked.texts).encode(),
        }
        kept.hidden += own
        yield kept


def _files(folder: Path) -> bytes:
    """All bytes of all files."""
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def _texts(folder: Path) -> bytes:
    """All values of all tables: a long text may lie in pieces in the file."""
    values = []
    for path in sorted(folder.rglob("*.sqlite3")):
        with closing(sqlite3.connect(path)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                for row in database.execute(f'SELECT * FROM "{table}"'):  # noqa: S608 - its own names
                    values += [v if isinstance(v, bytes) else str(v).encode() for v in row]
    return b"\n".join(values)


# --- the look -----------------------------------------------------------------------------------


def test_the_run_hides_what_it_says_it_hides(record: Record) -> None:
    """At least 200 messages were sent, with secrets of every type, and each type was reported."""
    assert len(record.contacts) >= 2 * MESSAGES - 100
    assert len(record.hidden) >= MESSAGES
    assert {secret.kind for secret in record.hidden} == DEFAULT_TYPES
    assert set(record.redacted) == {str(kind) for kind in DEFAULT_TYPES}


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_is_anywhere(record: Record, place: str) -> None:
    """Neither whole nor in large pieces, in UTF-8 or in UTF-16."""
    written = _readable(record.places[place])
    found = [secret.kind for secret in record.hidden if any(n.encode() in written for n in secret.needles)]

    assert found == []


def _readable(content: bytes) -> bytes:
    """What of it can be read, as UTF-8 and as UTF-16, whose letters of ASCII have a zero byte each."""
    runs = [re.findall(rb"[\x20-\x7e\s]{6,}", read) for read in (content, content.replace(b"\0", b""))]
    return b"\x00".join(run for each in runs for run in each)


def test_the_look_finds_text_in_every_encoding() -> None:
    """A look that could find nothing would show nothing."""
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        assert b"My SSN is" in _readable(b"\xff\xfe\x00\x80" + "My SSN is".encode(encoding) + b"\xc3\x00")


@pytest.mark.parametrize("place", [place for place in PLACES if place != "stderr"])
def test_e_mails_and_phones_are_kept(record: Record, place: str) -> None:
    """Support needs them; that they are found shows, too, that secrets would have been."""
    content = record.places[place]
    found = [contact for contact in record.contacts if contact.encode() in content]

    assert sum("@" in contact for contact in found) > 10
    assert sum("+" in contact for contact in found) > 10


def test_marks_stand_where_secrets_stood(record: Record) -> None:
    """A reader still understands what was said."""
    content = record.places["texts in Chroma's databases"].decode("utf-8", "replace")

    assert "Please charge my card [card ending " in content
    for mark in ("[IBAN ending ", "[password]", "[one-time code]", "[API key]", "[token]", "[SSN]"):
        assert mark in content


# --- where a text is cut ------------------------------------------------------------------------


def _written_apart(kind: RedactionType) -> Secret:
    """A secret of a type; a card is one with blanks in it, which may be cut there."""
    made = [secret for secret in secrets(300, seed=2) if secret.kind is kind]
    return next((secret for secret in made if " " in secret.value), made[0])


@pytest.mark.parametrize("kind", sorted(k for k in MAKERS if k is not RedactionType.CARD_SECURITY_CODE))
@pytest.mark.parametrize("verb", ["recall", "forget"])
def test_a_query_that_is_cut_gives_no_piece_of_a_secret_away(
    nodes: Nodes, workspace: Workspace, kind: RedactionType, verb: str
) -> None:
    """A long query is shortened before it is searched for; a secret across the cut is redacted before."""
    nodes.remember("Likes teal", customer_id="ada", embedding_model=EMBEDDING)
    secret = _written_apart(kind)
    before = len(workspace.requests)
    start = secret.sentence.index(secret.value)
    for seen in (len(secret.value) // 2, len(secret.value) - 2):
        query = "x " * 1_000
        query = query[: 2_000 - start - seen] + secret.sentence
        if verb == "recall":
            nodes.recall(query, customer_id="ada")
        else:
            nodes.forget(query=query, customer_id="ada")

    asked = json.dumps(workspace.requests[before:], ensure_ascii=False)
    assert "x x" in asked
    half = secret.value[: len(secret.value) // 2]
    assert half not in asked


@pytest.mark.parametrize("kind", sorted(k for k in MAKERS if k is not RedactionType.CARD_SECURITY_CODE))
def test_an_agents_answer_that_is_cut_gives_no_piece_of_a_secret_away(
    nodes: Nodes, kind: RedactionType
) -> None:
    """The beginning of a long answer is kept; a secret across the cut is redacted before."""
    api = Api(nodes.process, {**nodes.credentials, "api_key": KEY})
    secret = _written_apart(kind)
    start = secret.sentence.index(secret.value)
    tickets = []
    for number, seen in enumerate((len(secret.value) // 2, len(secret.value) - 2)):
        answer = ("x " * 300)[: 600 - start - seen] + secret.sentence + " y" * 40
        tickets.append(ticket(str(number), "A", message(1, "Hello?"), message(2, answer, role="agent")))
    api.post("/tickets/import", {"tickets": tickets})

    stored = api.get("/memories?customer_id=A")["memories"]
    replies = [memory["reply"] for memory in stored]
    assert len(replies) == 2
    assert all(reply.startswith("x") for reply in replies)
    half = secret.value[: len(secret.value) // 2]
    assert not any(half in reply for reply in replies)
