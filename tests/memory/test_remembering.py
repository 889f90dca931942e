"""Remembering much at once."""

from tests.conftest import Nodes


def test_much_text_is_stored_however_long_embedding_it_takes(nodes: Nodes) -> None:
    """The time limit is for waiting for the server; working on 60,000 characters does not use it up."""
    nodes.credentials["timeout_seconds"] = "1"
    text = "客户说包裹在运输途中被海关打开，里面的茶杯碎了一只。" * 2_400
    assert len(text) > 60_000
    assert nodes.remember(text, customer_id="anna")["stored"] == 1
