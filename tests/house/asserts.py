"""Tests that cannot fail."""

from __future__ import annotations

import ast

from .docs import Function
from .imports import dotted

_CHECKS = ("assert", "check", "verify", "raises", "warns", "fail", "benchmark", "run_case")


def _checks(node: ast.AST, helpers: set[str]) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assert):
            return True
        if isinstance(inner, ast.Call):
            name = dotted(inner.func)
            if name.split(".")[-1].lstrip("_").startswith(_CHECKS) or name in helpers:
                return True
    return False


def check_tests(source: str, name: str) -> list[str]:
    """Complaints about tests that compare nothing, not even in a helper they call."""
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, Function)]
    helpers: set[str] = set()
    while True:
        found = {f.name for f in functions if _checks(f, helpers)}
        if found <= helpers:
            break
        helpers |= found
    silent = [f for f in functions if f.name.startswith("test_") and not _checks(f, helpers)]
    return [f"{name}:{f.lineno} {f.name} asserts nothing" for f in silent]
