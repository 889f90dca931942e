"""The provider: checks the credentials form."""

from typing import Any

from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError

from dify.opening import check_settings
from memory.errors import InternalError, MemoryFault


class CustomerMemoryProvider(ToolProvider):
    """Says in a builder's words what is wrong with the form before it is saved."""

    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        try:
            check_settings(credentials)
        except MemoryFault as fault:
            raise ToolProviderCredentialValidationError(fault.message) from None
        except Exception:
            raise ToolProviderCredentialValidationError(InternalError().message) from None
