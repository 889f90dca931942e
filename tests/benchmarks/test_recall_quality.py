"""The benchmark of recall with our engine on a real server, and what is made of its figures."""

from benchmarks.data_sets import DataSet, Memories, Question, Session, Turn, support
from benchmarks.metrics import Restraint, by_group, restraint
from benchmarks.peer_mem0 import dated
from benchmarks.recall_quality import report, run, table
from benchmarks.systems import OurEngine
from development.chroma_server import ChromaServer

MARCH, MAY = 1_772_500_000.0, 1_777_600_000.0


def customer(scope: str, order: str) -> Memories:
    """A customer who orders in March and asks in May; the ids of turns are the same for each."""
    return Memories(
        scope,
        (
            Session(
                f"{scope}-1",
                (
                    Turn("1", "user", f"I placed order {order} for a kettle.", MARCH),
                    Turn("2", "assistant", "Thank you, it leaves our warehouse tomorrow.", MARCH),
                ),
            ),
            Session(f"{scope}-2", (Turn("3", "user", "Can I pay by invoice?", MAY),)),
            Session("", (Turn("4", "user", "My cat is called Basil.", None),)),
        ),
    )


def asked(scope: str, text: str, *evidence: str, until: float | None = None) -> Question:
    """A question."""
    return Question(scope=scope, text=text, evidence=frozenset(evidence), category="fact", until=until)


DATA = DataSet(
    "support",
    (customer("ann", "10482"), customer("bo", "10483")),
    (
        asked("ann", "10482", "1"),
        asked("bo", "What is the name of the cat?", "4"),
        asked("bo", "Can I pay by invoice?", "1", until=MARCH),
        asked("ann", "xylophone"),
    ),
)


def test_our_engine_is_asked_in_each_scope(chroma: ChromaServer, namespace: str) -> None:
    """Hits are turns of the scope asked; the first are right; bounds of time hold; some are like nothing."""
    (its,) = run([OurEngine(chroma.url, namespace)], DATA)
    assert its.stored.turns == 8
    by_id, by_meaning, in_time, nothing = its.results
    assert by_id.nearest.ranked[0] == "1"
    assert sorted(by_id.nearest.ranked) == ["1", "2", "3", "4"]
    assert by_meaning.nearest.ranked[0] == "4"
    assert set(in_time.nearest.ranked) == {"1", "2"}
    assert nothing.usual is not None
    assert nothing.usual.ranked == ()
    assert restraint(its.results) == Restraint(1, 3, 1.0, 2 / 3)


def test_the_table_and_the_report_tell_the_same(chroma: ChromaServer, namespace: str) -> None:
    """A row a group and system, and the figures of it by name."""
    runs = run([OurEngine(chroma.url, namespace)], DATA)
    told = report(DATA, runs)
    scored = told["systems"]["ours"]["scores"]["all"]
    assert (told["turns"], told["scopes"], scored["questions"], scored["recall_10"]) == (8, 2, 3, 1.0)
    row = next(line for line in table(DATA, runs).splitlines() if line.startswith("all"))
    assert row.split()[:5] == ["all", "ours", "3", "1.000", "1.000"]


def test_mem0_is_told_the_moment_in_the_text() -> None:
    """It has no other place for it that its search by meaning looks at."""
    assert dated(Turn("1", "user", "Ines: Hello!", MARCH)) == "[1:06 am on 3 March, 2026] Ines: Hello!"
    assert dated(Turn("1", "user", "Hello!", None)) == "Hello!"


def test_recall_of_fixed_cases_is_what_it_was(chroma: ChromaServer, namespace: str) -> None:
    """Three customers of the support cases: a change of these figures is a change of recall."""
    data = support().first(3)
    (its,) = run([OurEngine(chroma.url, namespace)], data)
    scored = by_group(data, its.results)
    assert {
        name: (s.questions, round(s.recall_5, 3), round(s.recall_10, 3)) for name, s in scored.items()
    } == {
        "changed": (2, 1.0, 1.0),
        "context": (7, 0.714, 0.857),
        "cross_language": (2, 1.0, 1.0),
        "fact": (7, 0.857, 0.857),
        "identifier": (6, 1.0, 1.0),
        "paraphrase": (3, 0.667, 1.0),
        "time": (3, 0.833, 1.0),
        "tune": (30, 0.85, 0.933),
        "all": (30, 0.85, 0.933),
    }
    assert scored["identifier"].first == 1.0
    assert restraint(its.results) == Restraint(9, 30, 8 / 9, 19 / 30)
