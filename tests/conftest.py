"""What the tests share: one Chroma server and one plugin process a worker, a fresh namespace a test.

The plugin SDK patches the standard library when it is imported, so the tests never import it: what needs it
runs in a plugin process, or in a Python process of its own.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from development.chroma_server import ChromaServer
from development.daemon import PluginProcess, ToolAnswer, Workspace

type Json = dict[str, Any]


@dataclass
class Nodes:
    """The four nodes as a builder uses them: credentials are set once, parameters are given by name."""

    process: PluginProcess
    credentials: Json
    conversation_id: str | None = None

    def remember(self, content: Any = None, **parameters: Any) -> ToolAnswer:
        """Run a remember node."""
        return self._run("remember", {"content": content, **parameters})

    def recall(self, query: str = "", **parameters: Any) -> ToolAnswer:
        """Run a recall node."""
        return self._run("recall", {"query": query, **parameters})

    def forget(self, **parameters: Any) -> ToolAnswer:
        """Run a forget node."""
        return self._run("forget", parameters)

    def link(self, **parameters: Any) -> ToolAnswer:
        """Run a link_conversation node."""
        return self._run("link_conversation", parameters)

    def within(self, conversation_id: str | None) -> "Nodes":
        """The same nodes in a chatflow, whose session has a conversation id."""
        return Nodes(self.process, self.credentials, conversation_id)

    def texts(self, query: str = "", **parameters: Any) -> list[str]:
        """What a recall finds, as texts, best first."""
        return [memory["text"] for memory in self.recall(query, **parameters)["memories"]]

    def _run(self, name: str, parameters: Json) -> ToolAnswer:
        return self.process.tool(
            name, parameters, credentials=self.credentials, conversation_id=self.conversation_id
        )


@pytest.fixture(scope="session")
def chroma() -> Iterator[ChromaServer]:
    """A real Chroma server for all tests of a worker."""
    with ChromaServer() as server:
        yield server


@pytest.fixture(scope="session")
def workspace() -> Workspace:
    """Dify's side of the calls back, with a real embedding model."""
    return Workspace()


@pytest.fixture(scope="session")
def plugin(workspace: Workspace) -> Iterator[PluginProcess]:
    """A real plugin process for all tests of a worker."""
    with PluginProcess(workspace=workspace) as process:
        yield process


@pytest.fixture
def namespace() -> str:
    """A namespace nobody has used."""
    return f"t{uuid.uuid4().hex[:16]}"


@pytest.fixture
def credentials(chroma: ChromaServer, namespace: str) -> Json:
    """The credentials form filled in for a fresh namespace."""
    return {"chroma_url": chroma.url, "namespace": namespace}


@pytest.fixture
def nodes(plugin: PluginProcess, credentials: Json) -> Nodes:
    """The four nodes on a fresh namespace."""
    return Nodes(plugin, credentials)
