"""`make demo`: a support case over three conversations in two weeks, played on the packaged plugin.

Builds the package, installs it as Dify's daemon does, starts a Chroma server (or uses CHROMA_URL), and plays
the daemon. Every step says what the node was given and what it answered; the first surprise ends it with
status 1.
"""

import json
import os
import sys
import tempfile
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from development.chroma_server import ChromaServer
from development.daemon import PluginFailure, PluginProcess, ToolAnswer
from development.installing import install, installed_bytes, unpack
from development.package import build

MARIA, TOM = "customer-maria", "customer-tom"


class SurpriseError(Exception):
    """The plugin did something other than the demo says."""


class Stage:
    """Runs nodes and tells what happens.

    Args:
        plugin: the process.
        credentials: the form.
    """

    def __init__(self, plugin: PluginProcess, credentials: dict[str, Any]) -> None:
        self._plugin, self._credentials = plugin, credentials

    def say(self, text: str) -> None:
        """A heading."""
        print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n== {text}")

    def node(self, name: str, conversation: str | None = None, **parameters: Any) -> ToolAnswer:
        """Run a node, print what it was given and what it answered."""
        shown = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        where = f"   (in conversation {conversation})" if conversation else ""
        print(f"  {name}({shown}){where}")
        answer = self._plugin.tool(
            name, parameters, credentials=self._credentials, conversation_id=conversation
        )
        print(f"    -> {answer.text}")
        return answer

    def refused(self, name: str, code: str, conversation: str | None = None, **parameters: Any) -> None:
        """Run a node that has to refuse."""
        try:
            self.node(name, conversation, **parameters)
        except PluginFailure as failure:
            print(f"    -> refused: {failure.message}")
            expect(failure.code == code, f"refused with {code}")
            return
        raise SurpriseError(f"{name} was not refused")

    def imported(self, export: dict[str, Any]) -> dict[str, Any]:
        """Import an export over the endpoint, and print the counts."""
        settings = {**self._credentials, "api_key": "demo"}
        answer = self._plugin.endpoint(
            "POST",
            "/tickets/import",
            settings=settings,
            body=json.dumps(export).encode(),
            headers={"Authorization": "Bearer demo"},
        )
        report: dict[str, Any] = answer.json()
        counts = {name: count for name, count in report["tickets"].items() if count}
        print(f"  POST /tickets/import -> {answer.status}, {counts}, redacted {report['redacted']}")
        return report

    def prompt(self, answer: ToolAnswer) -> None:
        """Show the block that goes into the prompt."""
        print("    the prompt gets:")
        for line in (answer["context"] or "(nothing)").splitlines():
            print(f"      | {line}")


def expect(holds: bool, what: str) -> None:
    """Stop the demo unless something holds."""
    if not holds:
        raise SurpriseError(f"expected: {what}")


def play(stage: Stage) -> None:
    """The case, with what must come out of each step."""
    now = datetime.now(UTC)
    first, second = (now - timedelta(days=14)).isoformat(), (now - timedelta(days=6)).isoformat()

    stage.say("Two weeks ago. Maria writes in a chat; the flow does not know yet who she is.")
    stage.node(
        "remember",
        "chat-1",
        content=[
            {
                "role": "user",
                "content": "Hi, my coffee machine from order A-4471-X arrived with a broken lid.",
            },
            {"role": "assistant", "content": "I am sorry. You could also try our Pro plan."},
        ],
        occurred_at=first,
    )
    unknown = stage.node("recall", "chat-1", query="coffee machine")
    expect(unknown["linked"] is False and unknown["found"] >= 1, "the chat sees its own memory only")

    stage.say("She logs in: the conversation gets its customer, and the case a number.")
    linked = stage.node("link_conversation", "chat-1", customer_id=MARIA, case_id="case-77")
    expect(linked["moved"] == 2, "what was said before comes along")
    for attribute, content in (
        ("delivery address", "Lives at 5 Elm Street"),
        ("plan", "Is on the Basic plan"),
    ):
        stage.node(
            "remember", "chat-1", customer_id=MARIA, content=content, attribute=attribute, occurred_at=first
        )
    stage.node(
        "remember",
        "chat-1",
        customer_id=MARIA,
        content="Write to her in short sentences",
        kind="procedural",
        occurred_at=first,
    )

    stage.say("Another customer, Tom, has an order with nearly the same number.")
    stage.node(
        "remember",
        "chat-2",
        customer_id=TOM,
        content="Order A-4471-Y was delivered to the wrong house",
        kind="episodic",
        occurred_at=second,
    )

    stage.say("Six days ago, a second conversation. She moved; a newer value replaces the older one.")
    moved = stage.node(
        "remember",
        "chat-3",
        customer_id=MARIA,
        case_id="case-77",
        content="Lives at 9 Oak Avenue now",
        attribute="delivery address",
        occurred_at=second,
    )
    expect(moved["superseded"] == 1, "the old address is history")
    again = stage.node(
        "remember",
        "chat-3",
        customer_id=MARIA,
        content="Lives at 9 Oak Avenue now",
        attribute="delivery address",
        occurred_at=second,
    )
    expect(again["duplicates"] == 1, "the same fact twice is one memory")

    stage.say("Today, a third conversation. The assistant knows the case.")
    known = stage.node(
        "recall", "chat-4", customer_id=MARIA, query="Where do you send my replacement for order A-4471-X?"
    )
    stage.prompt(known)
    texts = [memory["text"] for memory in known["memories"]]
    expect("9 Oak Avenue" in known["context"], "the new address is there")
    expect("5 Elm Street" not in known["context"], "the old address is not")
    expect("short sentences" in known["context"], "so is the rule, without being asked for")
    expect(texts[0].startswith("Hi, my coffee machine"), "the order's own number ranks first")
    expect("A-4471-Y" not in known["context"], "nothing of Tom's")
    history = stage.node("recall", customer_id=MARIA, query="address", include_superseded=True)
    stage.prompt(history)
    expect(any(not memory["is_current"] for memory in history["memories"]), "history is there when asked for")

    stage.say("Nobody gets at another customer's memory.")
    stage.refused("recall", "conversation_of_another_customer", "chat-1", customer_id=TOM, query="address")
    stage.refused("recall", "customer_missing", query="address")
    stage.refused("recall", "id_invalid", customer_id="*", query="address")

    stage.say("Her past tickets come in over HTTP; sending the export again changes nothing.")
    export = {
        "tickets": [
            {
                "source": "helpdesk",
                "ticket_id": "4711",
                "customer_id": MARIA,
                "subject": "Descaling",
                "messages": [
                    {
                        "message_id": "1",
                        "role": "customer",
                        "created_at": "2026-01-15T09:00:00Z",
                        "text": "Which descaler fits? Pay with my card 4111 1111 1111 1111 as usual.",
                    }
                ],
            }
        ]
    }
    expect(stage.imported(export)["tickets"]["imported"] == 1, "the ticket is imported")
    expect(stage.imported(export)["tickets"]["unchanged"] == 1, "the second time it is unchanged")
    past = stage.node("recall", customer_id=MARIA, query="descaler", limit=1)
    stage.prompt(past)
    expect("[card ending 1111]" in past["context"], "the card number was never stored")

    stage.say("Maria asks to be forgotten: first a preview, then the deletion with a receipt.")
    preview = stage.node("forget", customer_id=MARIA, scope="everything")
    expect(preview["deleted"] == 0 and preview["matched"] > 0, "a preview deletes nothing")
    gone = stage.node("forget", customer_id=MARIA, scope="everything", action="delete")
    expect(gone["deleted"] == preview["matched"] and gone["receipt"]["verified"], "all of it is gone")
    expect(stage.node("recall", customer_id=MARIA)["found"] == 0, "nothing is known of Maria")
    expect(stage.node("recall", customer_id=TOM)["found"] == 1, "Tom's memory is untouched")


def main() -> int:
    """Run the demo.

    Returns:
        Exit status: 0 if everything was as it should be.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="customer-memory-demo-")))
        package = build(target=folder)
        print(f"Built {package.name} ({package.stat().st_size / 1e6:.2f} MB)")
        print("Installing it as Dify's plugin daemon does (its own environment, from requirements.txt) ...")
        plugin_folder = unpack(package, folder)
        python = install(plugin_folder)
        print(f"Installed: {installed_bytes(plugin_folder) / 1e6:.0f} MB")
        url = os.environ.get("CHROMA_URL", "")
        if url:
            print(f"Using the Chroma server at {url}")
        else:
            url = stack.enter_context(ChromaServer()).url
            print(f"Started a Chroma server at {url}, with a temporary folder")
        plugin = stack.enter_context(PluginProcess(plugin_folder, python))
        print(f"Started the plugin: first line after {plugin.seconds_to_first_line:.1f} s")
        credentials = {"chroma_url": url, "namespace": f"demo-{uuid.uuid4().hex[:8]}"}
        try:
            plugin.validate(credentials)
            print("The credentials form is accepted")
            play(Stage(plugin, credentials))
        except (PluginFailure, SurpriseError) as problem:
            print(f"\nThis went wrong: {problem}", file=sys.stderr)
            return 1
        print("\nEverything was as it should be.")
        return 0


if __name__ == "__main__":
    sys.exit(main())
