"""Takes secrets out of a text before it is embedded, sent to a model, stored or logged.

Pure functions: they read no environment, open no connection and log nothing.
"""

from memory.redaction.engine import redact
from memory.redaction.model import (
    DEFAULT_TYPES,
    MARKS,
    Json,
    RedactedValue,
    Redaction,
    RedactionType,
)
from memory.redaction.nested import redact_value

__all__ = [
    "DEFAULT_TYPES",
    "MARKS",
    "Json",
    "RedactedValue",
    "Redaction",
    "RedactionType",
    "redact",
    "redact_value",
]
