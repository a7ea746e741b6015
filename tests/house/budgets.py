"""Line budgets: lines of code, without docstrings, comments and blank lines."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Mapping

CORE_TOTAL = 3000
CORE_MODULE = 400
FACE = 150

_NOT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(source: str) -> int:
    """Count the lines on which code stands."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if first is not None and ast.get_docstring(node, clean=False) is not None:
                lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def check_budgets(core: Mapping[str, int], face: int) -> list[str]:
    """Complaints about `core`, code lines by module of the microkernel, and `face`, ``mxcore/__init__``."""
    large = {name: n for name, n in core.items() if n > CORE_MODULE}
    bad = [f"_core/{name}: {n} code lines, at most {CORE_MODULE}" for name, n in large.items()]
    if sum(core.values()) > CORE_TOTAL:
        bad.append(f"_core: {sum(core.values())} code lines in all, at most {CORE_TOTAL}")
    if face > FACE:
        bad.append(f"mxcore/__init__: {face} lines, at most {FACE}")
    return bad
