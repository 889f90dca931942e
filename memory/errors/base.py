"""What every failure has, and the three branches of the tree."""

from typing import ClassVar


class MemoryFault(Exception):
    """A failure with a stable `code`, a safe `message` and whether trying again may help.

    Args:
        details: values for the placeholders of the class's `template`; names and numbers only.
    """

    code: ClassVar[str]
    template: ClassVar[str]
    retryable: ClassVar[bool] = False

    def __init__(self, **details: str | int | float) -> None:
        self.details = details
        self.message = self.template.format(**details)
        super().__init__(self.message)

    def __str__(self) -> str:
        """The message and the code, as Dify shows them when a node fails."""
        again = " Trying again later may help." if self.retryable else ""
        return f"{self.message}{again} [{self.code}]"


class RequestError(MemoryFault):
    """The caller has to change the input of this call."""


class SetupError(MemoryFault):
    """The administrator has to change a setting or a server."""


class ServiceError(MemoryFault):
    """A service did not do its part; the same call may succeed later."""

    retryable = True
