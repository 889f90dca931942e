"""Tests of the tickets package."""
