"""The error of this package: a body, a setting or a time that cannot be read at all.

    TicketFormatError          the whole body or a setting is not readable
    └── TimeFormatError        one value is not a time

What is wrong with a single ticket or message is no error but a `TicketProblem` among the results.
"""


class TicketFormatError(Exception):
    """The input cannot be read; whoever sends it must change it.

    Attributes:
        code: A stable snake_case code, such as `json_invalid`.
        path: Where in the input, such as `lines[3]` or `tickets`; "" is the whole of it.
        retryable: Always False: the same input fails again.
    """

    retryable = False

    def __init__(self, code: str, path: str = "") -> None:
        """Make the error.

        Args:
            code: The stable code.
            path: The place in the input; never a piece of its content.
        """
        self.code = code
        self.path = path
        super().__init__(f"{code} at {path}" if path else code)


class TimeFormatError(TicketFormatError):
    """A value is not a usable time: `time_missing`, `time_invalid` or `time_without_zone`."""
