"""Limits: which customers and which tickets of a namespace a call may touch."""

from dataclasses import dataclass

from memory.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Limits:
    """What an API key is limited to; nothing by default.

    Attributes:
        customer_prefix: how a customer's id has to begin, case and all; "" for no limit. A conversation that
            is linked to nobody has no customer, and is outside every such limit.
        source: the one helpdesk or brand whose tickets may be touched; "" for no limit.
    """

    customer_prefix: str = ""
    source: str = ""

    def __bool__(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self.customer_prefix or self.source)

    def admits_customer(self, customer_id: str) -> bool:
        """Whether a customer, "" for none, is within the limits."""
        return customer_id.startswith(self.customer_prefix)

    def admits(self, source: str, customer_id: str) -> bool:
        """Whether a customer's ticket is within the limits."""
        return self.source in {"", source} and self.admits_customer(customer_id)

    def check_customer(self, customer_id: str) -> None:
        """Make sure that a customer, "" for none, is within the limits.

        Raises:
            Forbidden: they are not.
        """
        if not self.admits_customer(customer_id):
            raise out_of_reach()

    def check_source(self, source: str) -> None:
        """Make sure that tickets of a source are within the limits.

        Raises:
            Forbidden: they are not.
        """
        if self.source not in {"", source}:
            raise out_of_reach()


UNLIMITED = Limits()


def out_of_reach() -> Forbidden:
    """The refusal of what lies outside the limits."""
    return Forbidden(reason="it is limited to other customers or another source")
