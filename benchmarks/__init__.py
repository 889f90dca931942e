"""Measurements; each compares with something measured in the same run, since machines differ."""
