"""Benchmarks, run by ``pytest --benchmark``. What counts are ratios measured in one process, never seconds."""
