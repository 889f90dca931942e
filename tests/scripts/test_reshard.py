"""The command that moves memories, beside a plugin process that reads and writes all the time."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from development.chroma_server import ChromaServer
from development.daemon import PluginFailure, PluginProcess
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.namespace import Namespace
from memory.settings import ChromaSettings
from tests.conftest import Json, Nodes
from tests.scripts.conftest import Ended, run_command

READ = "always-there"
TEXTS = [f"Statement {n}, there from the start" for n in range(5)]
WRITERS = 2


def reshard(credentials: Json, *arguments: object) -> Ended:
    """Run the command line on a namespace."""
    place = ["--chroma-url", credentials["chroma_url"], "--namespace", credentials["namespace"]]
    return run_command(*place, *arguments, script="reshard", key=None)


def layout(credentials: Json) -> tuple[int, int]:
    """Number of collections and generation of a namespace."""
    settings = ChromaSettings(url=credentials["chroma_url"], namespace=credentials["namespace"])
    about = Namespace(Chroma(settings, Deadline.after(60.0)), settings).look()
    assert about is not None
    return about.shards, about.generation


class Others:
    """Callers of a plugin process that go on until they are told to stop."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.stop = threading.Event()
        self.kept: dict[str, list[str]] = {}
        self.gone: list[str] = []
        self.unsure: set[str] = set()
        self.codes: Counter[str] = Counter()
        self.reads = 0

    def read(self) -> None:
        """What was there from the start is there at any moment."""
        while not self.stop.is_set():
            assert sorted(self.nodes.texts("", customer_id=READ)) == TEXTS
            assert self.nodes.texts(TEXTS[0], customer_id=READ)[0] == TEXTS[0]
            self.reads += 1

    def write(self, name: str) -> None:
        """Remember one statement after another; forget every fourth customer again."""
        for number in range(100_000):
            if self.stop.is_set():
                return
            customer_id, text = f"{name}-{number // 3}", f"Statement {number} of {name}"
            if self._done(partial(self.nodes.remember, text, customer_id=customer_id)):
                self.kept.setdefault(customer_id, []).append(text)
            else:
                self.unsure.add(customer_id)
            forget = partial(self.nodes.forget, customer_id=customer_id, scope="everything", action="delete")
            if number % 12 == 11:
                (self.gone.append if self._done(forget) else self.unsure.add)(customer_id)

    def _done(self, call: Callable[[], object]) -> bool:
        """Do something, and again as the failure says; False if it was not done when everything ended."""
        while True:
            try:
                call()
            except PluginFailure as failure:
                self.codes[failure.code] += 1
                if self.stop.wait(0.1):
                    return False
            else:
                return True


def test_a_namespace_is_moved_while_a_plugin_process_uses_it(
    plugin: PluginProcess, chroma: ChromaServer, nodes: Nodes, credentials: Json
) -> None:
    """64 collections become 5: nobody reads an empty memory, and no acknowledged write is lost."""
    for text in TEXTS:
        nodes.remember(text, customer_id=READ)
    others = Others(nodes)
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        running = [pool.submit(others.read)]
        running += [pool.submit(others.write, f"writer-{n}") for n in range(WRITERS)]
        try:
            told = reshard(credentials, "--collections", 5)
        finally:
            others.stop.set()
        for each in running:
            each.result()
    assert told.status == 0, told.complaints
    assert "rows copied" in told.output
    assert layout(credentials) == (5, 1)
    assert set(others.codes) <= {"namespace_moving"}
    assert others.reads > 0
    assert len(others.kept) > WRITERS
    for customer_id in others.kept.keys() - others.unsure:
        texts = others.kept[customer_id]
        wanted = [] if customer_id in others.gone else sorted(texts)
        assert sorted(nodes.texts("", customer_id=customer_id)) == wanted, customer_id
    nodes.remember("Said after the move", customer_id=READ)
    assert sorted(nodes.texts("", customer_id=READ)) == sorted([*TEXTS, "Said after the move"])


def test_the_command_says_what_it_cannot_do(chroma: ChromaServer, nodes: Nodes, credentials: Json) -> None:
    """Wrong arguments, an empty namespace, a server that is not there; no trace, status 2."""
    assert "nothing was ever remembered" in reshard(credentials, "--collections", 5).complaints
    nodes.remember("Likes tea", customer_id="ada")
    for arguments in (["--collections", 0], ["--collections", 1_025], ["--collections", "many"], []):
        told = reshard(credentials, *arguments)
        assert told.status == 2
        assert "Traceback" not in told.complaints
    assert "no move to give up" in reshard(credentials, "--abandon").output
    assert "0 earlier layouts" in reshard(credentials, "--drop-kept").output
    nowhere = {**credentials, "chroma_url": "http://127.0.0.1:9"}
    told = reshard(nowhere, "--collections", 5, "--retries", 1, "--retry-seconds", 0.01)
    assert (told.status, "chroma_unreachable" in told.complaints) == (2, True)
    assert layout(credentials) == (64, 0)
    assert reshard(credentials, "--collections", 64).output.startswith("0 rows copied")


def test_what_is_kept_is_deleted_later(chroma: ChromaServer, nodes: Nodes, credentials: Json) -> None:
    """`--keep-old` leaves the old collections, `--drop-kept` takes them away; the embedder can be stated."""
    nodes.remember("Likes tea", customer_id="ada")
    told = reshard(credentials, "--collections", 2, "--embedding-source", "builtin", "--keep-old")
    assert told.status == 0, told.complaints
    assert layout(credentials) == (2, 1)
    assert "1 earlier layouts" in reshard(credentials, "--drop-kept").output
    assert nodes.texts("tea", customer_id="ada") == ["Likes tea"]
