"""The plugin's version, as the manifest has it."""

VERSION = "0.1.0"
