"""Damaged files for every reader: ``python -m tests.fuzz``."""
