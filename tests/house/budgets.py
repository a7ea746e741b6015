"""Line budgets: logical lines of code, without docstrings, comments and blank lines.

What the formatter folds over several lines is one: the budget is for what is said, not for how it is printed.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Mapping

CORE_TOTAL = 3000
CORE_MODULE = 400
FACE = 150


def code_lines(source: str) -> int:
    """Count the logical lines of code."""
    ends = {t.start[0] for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type == tokenize.NEWLINE}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is not None:
                ends.discard(node.body[0].end_lineno)
    return len(ends)


def check_budgets(core: Mapping[str, int], face: int) -> list[str]:
    """Complaints about `core`, code lines by module of the microkernel, and `face`, ``mxcore/__init__``."""
    large = {name: n for name, n in core.items() if n > CORE_MODULE}
    bad = [f"_core/{name}: {n} code lines, at most {CORE_MODULE}" for name, n in large.items()]
    if sum(core.values()) > CORE_TOTAL:
        bad.append(f"_core: {sum(core.values())} code lines in all, at most {CORE_TOTAL}")
    if face > FACE:
        bad.append(f"mxcore/__init__: {face} lines, at most {FACE}")
    return bad
