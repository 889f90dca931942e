"""What the installed package costs before it does anything, against a bare plugin of the SDK in the same run.

Both are installed as the daemon does it, each with an environment of its own, and started in turn, so that
whatever else the machine does meets both: time and size of the install, time to the first line, to the end of
the first call and of a steady one, and memory. Ours recalls from a Chroma server; the bare plugin echoes, so
that its calls are the floor of the SDK. `make start-benchmark` ends with 1 if our first line takes more than
1.5 times as long.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import resident_megabytes
from development.chroma_server import ChromaServer
from development.daemon import PROVIDER, Json, PluginProcess
from development.installing import install, installed_bytes, unpack
from development.package import build
from development.places import PROJECT

ROUNDS = 7
"""Starts of each; medians are compared."""
STEADY_CALLS = 30
"""Calls after the first one of each start."""
MEMORIES = 20
"""Of the customer that is asked about."""
MOST_TIMES = 1.5
"""How many times as long as the bare plugin's our first line may take."""

_BARE = {
    "main.py": """
from dify_plugin import DifyPluginEnv, Plugin

plugin = Plugin(DifyPluginEnv())

if __name__ == "__main__":
    plugin.run()
""",
    "manifest.yaml": """
version: 0.0.1
type: plugin
author: example
name: bare
label: {en_US: Bare}
description: {en_US: Echoes.}
icon: icon.svg
created_at: "2026-01-01T00:00:00Z"
resource: {memory: 268435456, permission: {tool: {enabled: true}}}
plugins: {tools: [provider/bare.yaml]}
meta:
  version: 0.0.1
  arch: [amd64, arm64]
  runner: {language: python, version: "3.12", entrypoint: main}
""",
    "provider/bare.yaml": """
identity: {author: example, name: bare, label: {en_US: Bare}, description: {en_US: Echoes.}, icon: icon.svg}
tools: [tools/echo.yaml]
extra: {python: {source: provider/bare.py}}
""",
    "provider/bare.py": """
from dify_plugin import ToolProvider


class BareProvider(ToolProvider):
    def _validate_credentials(self, credentials):
        pass
""",
    "provider/__init__.py": "",
    "tools/echo.yaml": """
identity: {name: echo, author: example, label: {en_US: Echo}}
description: {human: {en_US: Echoes.}, llm: Echoes.}
parameters:
  - name: text
    type: string
    form: llm
    required: true
    label: {en_US: Text}
    human_description: {en_US: What to echo.}
    llm_description: What to echo.
extra: {python: {source: tools/echo.py}}
""",
    "tools/echo.py": """
from dify_plugin import Tool


class EchoTool(Tool):
    def _invoke(self, tool_parameters):
        yield self.create_text_message(tool_parameters["text"])
""",
    "tools/__init__.py": "",
    "_assets/icon.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>\n',
}
"""The files of a plugin that does next to nothing."""


def bare_plugin(folder: Path) -> Path:
    """Write the bare plugin.

    Returns:
        Its folder.
    """
    requirements = f"dify-plugin\n-c {PROJECT / 'requirements.txt'}\n"  # the versions are ours
    for name, text in {**_BARE, "requirements.txt": requirements}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8")
    return folder


@dataclass(frozen=True, slots=True)
class Installed:
    """A plugin, and how to call it.

    Attributes:
        folder, python: where it lies, and the interpreter of its environment.
        megabytes, seconds: size of the environment, and how long making it took.
        provider, tool, parameters, credentials: of the call.
    """

    folder: Path
    python: Path
    megabytes: float
    seconds: float
    provider: str
    tool: str
    parameters: Json
    credentials: Json

    def call(self, process: PluginProcess) -> float:
        """Seconds that one call takes."""
        started = time.perf_counter()
        process.tool(self.tool, self.parameters, credentials=self.credentials, provider=self.provider)
        return time.perf_counter() - started


def installed(folder: Path, provider: str, tool: str, parameters: Json, credentials: Json) -> Installed:
    """Make a plugin's environment."""
    started = time.perf_counter()
    python = install(folder)
    seconds = time.perf_counter() - started
    size = installed_bytes(folder) / 1e6
    return Installed(folder, python, size, seconds, provider, tool, parameters, credentials)


def started(plugin: Installed) -> dict[str, float]:
    """Start a plugin, call it, and end it.

    Returns:
        Seconds and megabytes by name.
    """
    with PluginProcess(plugin.folder, plugin.python) as process:
        figures = {
            "first_line_seconds": process.seconds_to_first_line,
            "idle_megabytes": resident_megabytes(process.pid),
            "first_call_seconds": plugin.call(process),
        }
        figures["steady_call_seconds"] = statistics.median(plugin.call(process) for _ in range(STEADY_CALLS))
        figures["called_megabytes"] = resident_megabytes(process.pid)
    return figures


def medians(rounds: int, *starts: Callable[[], Mapping[str, float]]) -> list[dict[str, float]]:
    """Medians of each kind of start, taken in turn so that what else the machine does meets all."""
    for start in starts:  # the first start of each reads its files from the disk
        start()
    taken = [[start() for start in starts] for _ in range(rounds)]
    return [_median(column) for column in zip(*taken, strict=True)]


def _median(taken: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: statistics.median(figures[name] for figures in taken) for name in taken[0]}


def main() -> int:
    """Measure, print, and say whether it is quick enough.

    Returns:
        0 if it is, else 1.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures here")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="customer-memory-start-")))
        chroma = stack.enter_context(ChromaServer())
        print("Building the package and installing it and a bare plugin as Dify's daemon does")
        package = build(PROJECT, folder)
        credentials = {"chroma_url": chroma.url, "namespace": f"start{uuid.uuid4().hex[:8]}"}
        bare = installed(bare_plugin(folder / "bare"), "bare", "echo", {"text": "Likes tea"}, {})
        question = {"customer_id": "anna", "query": "tea"}
        ours = installed(unpack(package, folder), PROVIDER, "recall", question, credentials)
        _fill(ours)
        print(f"Starting each {ROUNDS} times in turn, with {1 + STEADY_CALLS} calls")
        of_bare, of_ours = medians(ROUNDS, lambda: started(bare), lambda: started(ours))
        for figures, plugin in ((of_bare, bare), (of_ours, ours)):
            figures["install_megabytes"], figures["install_seconds"] = plugin.megabytes, plugin.seconds
        of_ours["package_megabytes"] = package.stat().st_size / 1e6
    ratios = {name: of_ours[name] / value for name, value in of_bare.items()}
    print(table(ratios, of_ours, of_bare))
    if options.json:
        figures_by_name = {"ratios": ratios, "ours": of_ours, "bare": of_bare}
        options.json.write_text(json.dumps(figures_by_name, indent=2) + "\n")
    return 0 if ratios["first_line_seconds"] <= MOST_TIMES else 1


def _fill(plugin: Installed) -> None:
    """Let there be something to recall."""
    with PluginProcess(plugin.folder, plugin.python) as process:
        for number in range(MEMORIES):
            content = f"Asked about order {10_000 + number} of tea."
            parameters = {"customer_id": "anna", "content": content}
            process.tool("remember", parameters, credentials=plugin.credentials)


def table(ratios: Mapping[str, float], ours: Mapping[str, float], bare: Mapping[str, float]) -> str:
    """The figures, ratios first."""
    lines = [f"\n{'':24}{'ratio':>8}{'ours':>12}{'bare plugin':>14}"]
    for name, ratio in ratios.items():
        what, _, unit = name.rpartition("_")
        shown = [
            f"{value:.3f} s" if unit == "seconds" else f"{value:.0f} MB" for value in (ours[name], bare[name])
        ]
        lines.append(f"{what.replace('_', ' '):24}{ratio:8.2f}{shown[0]:>12}{shown[1]:>14}")
    lines.append(f"{'package':24}{'':8}{ours['package_megabytes']:>9.2f} MB")
    first = ratios["first_line_seconds"]
    lines.append(f"first line: {first:.2f}, aimed at {MOST_TIMES} at the most")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
