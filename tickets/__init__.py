"""Exports of helpdesks as tickets: pure functions, without network, clock or environment.

Start with `model` (what a ticket is) and `reader` (from a body to tickets); `formats` has one file a vendor.
"""
