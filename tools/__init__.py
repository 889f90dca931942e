"""Entry points of the tool nodes: one YAML and one small class each."""
