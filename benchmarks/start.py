"""How soon the installed package sends its first line, against a bare plugin of the SDK in the same run.

`make start-benchmark` builds and installs the package as the daemon does, makes a plugin of one tool that
only echoes, and starts the two in turn. It ends with 1 if ours takes more than 1.5 times as long.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from development.daemon import PluginProcess
from development.installing import install, unpack
from development.package import build
from development.places import PROJECT

ROUNDS = 7
"""Starts of each; the median is compared."""
MOST_TIMES = 1.5
"""How many times as long as the bare plugin ours may take."""

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
    for name, text in _BARE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8")
    return folder


def seconds_to_first_line(folder: Path, python: Path) -> float:
    """Start a plugin, wait for its first line, and end it."""
    with PluginProcess(folder, python) as process:
        return process.seconds_to_first_line


def medians(rounds: int, *starts: Callable[[], float]) -> list[float]:
    """Median seconds of each kind of start, taken in turn so that what else the machine does meets all."""
    for start in starts:  # the first start of each reads its files from the disk
        start()
    taken = [[start() for start in starts] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def main() -> int:
    """Measure, print, and say whether it is quick enough.

    Returns:
        0 if it is, else 1.
    """
    with tempfile.TemporaryDirectory(prefix="customer-memory-start-") as name:
        folder = Path(name)
        print("Building the package and installing it as Dify's daemon does")
        ours = unpack(build(PROJECT, folder), folder)
        python = install(ours)
        bare = bare_plugin(folder / "bare")
        print(f"Starting it and a bare plugin in turn, {ROUNDS} times each")
        of_bare, of_ours = medians(
            ROUNDS,
            lambda: seconds_to_first_line(bare, python),
            lambda: seconds_to_first_line(ours, python),
        )
    ratio = of_ours / of_bare
    print(f"bare plugin      {of_bare:.2f} s to the first line (median of {ROUNDS})")
    print(f"customer_memory  {of_ours:.2f} s to the first line (median of {ROUNDS})")
    print(f"ratio            {ratio:.2f}, at most {MOST_TIMES}")
    return 0 if ratio <= MOST_TIMES else 1


if __name__ == "__main__":
    sys.exit(main())
