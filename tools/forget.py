"""The forget node."""

from collections.abc import Generator
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage

from dify.replies import reply


class ForgetTool(Tool):
    """Runs `dify.nodes.forget`."""

    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        yield from reply(self, "forget", tool_parameters)
