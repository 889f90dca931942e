"""Entry points of the HTTP endpoints: one YAML each, one small class."""
