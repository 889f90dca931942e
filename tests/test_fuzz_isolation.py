"""Random calls for sixty customers with hostile ids: no leak, no loss, no ghost."""

from benchmarks.isolation import Run
from development.chroma_server import ChromaServer
from development.daemon import PluginProcess
from memory.settings import ChromaSettings

CALLS = 1_000


def test_no_customer_ever_sees_loses_or_keeps_what_is_not_theirs(
    chroma: ChromaServer, plugin: PluginProcess, namespace: str
) -> None:
    """Six workers, two processes, every verb; the whole memory is compared after every 500 calls."""
    with PluginProcess() as other:
        run = Run([plugin, other], ChromaSettings(url=chroma.url, namespace=namespace), seed=2_026)
        made = run.make(CALLS)
    assert sum(made.values()) > 0.9 * CALLS
    assert len(made) >= 14
