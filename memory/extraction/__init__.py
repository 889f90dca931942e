"""Extraction: a language model turns messages into facts worth keeping; everything it says is checked."""
