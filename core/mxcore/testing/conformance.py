"""The conformance kit: every operator on every device, from its samples.

As functions::

    from mxcore.testing.conformance import check_op
    check_op("my_scale", mx.cpu())

or as tests, of a plugin's operators or on a plugin's device::

    pytest --pyargs mxcore.testing.conformance --device=cpu --ops='my_*' --xfails-file=xfails.txt

A line of the file of expected failures is ``operator check reason``; a ``*`` stands for any operator or check. One that
passes after all is a failure, so that the file stays true.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from .._core import tables
from .._core.context import Context, current_context
from .._core.errors import suggest
from .._core.op import Op
from ..base import error
from ..plugin import operators as all_operators
from .case import cases
from .checks import CHECKS

__all__ = ["CHECKS", "Failures", "check_op", "context_of", "operators", "read_xfails"]


class Failures(AssertionError):
    """What an operator failed: `failures` is a list of (check, message)."""

    def __init__(self, op: str, failures: list[tuple[str, str]]) -> None:
        first: dict[str, str] = {}  # reason -> the check that told it; many have one reason, whatever sample showed it
        lines = []
        for check, message in failures:
            told = first.setdefault(message.partition(": ")[2] or message, check)
            lines.append(f"  {check}: {message if told == check else f'as {told}'}")
        super().__init__(f"operator {op} fails {len(failures)} of the checks:\n" + "\n".join(lines))
        self.failures = failures


def operators(pattern: str = "*") -> list[Op]:
    """The registered operators whose name fits one of the patterns (separated by blanks or commas).

    Raises
    ------
    MXNetError
        (also KeyError) if no operator fits one of the patterns.
    """
    known = {o.name: o for o in all_operators()}
    found: set[str] = set()
    for wanted in pattern.replace(",", " ").split():
        fitting = {name for name in known if fnmatchcase(name, wanted)}
        if not fitting:
            raise error(KeyError, f"no operator fits {wanted!r}{suggest(wanted, known)}{tables.why()}")
        found |= fitting
    return [known[name] for name in sorted(found)]


def check_op(op: Op | str, ctx: Context | None = None, checks: Iterable[str] | None = None) -> None:
    """Check one operator on one device.

    Parameters
    ----------
    op : Op or str
        An operator, registered or not, or the name of one.
    ctx : Context, optional
        The current one unless told.
    checks : iterable of str, optional
        Names from :data:`CHECKS`; all unless told.

    Raises
    ------
    Failures
        With every check that failed. An operator without samples fails the check ``samples``; one that does not run as
        declared is not tried on further checks.

    Examples
    --------
    >>> from mxcore.testing.conformance import check_op
    >>> check_op("relu", checks=["value", "gradient"])
    """
    op = tables.ops.get(op) if isinstance(op, str) else op
    ctx = ctx or current_context()
    chosen = list(CHECKS) if checks is None else [c for c in checks if c != "samples"]
    unknown = [c for c in chosen if c not in CHECKS]
    if unknown:
        raise error(ValueError, f"check_op: no check is named {unknown[0]!r}; checks: samples, {', '.join(CHECKS)}")
    if not op.samples:
        raise Failures(op.name, [("samples", "it declares no Sample, so nothing about it can be checked")])
    failures: list[tuple[str, str]] = []
    for name in chosen:
        message = _try(name, op, ctx)
        if message:
            failures.append((name, message))
            if name == "declared":
                break
    if failures:
        raise Failures(op.name, failures)


#: Check -> how many cases, samples in a dtype, it sees at most. These are about how calls, requests and gradients
#: go together, which rests on the operator more than on its parameters; all others see every sample.
MOST = dict.fromkeys(("out", "owned", "overlap", "wanted", "second gradient", "grad_req", "bound grad_req", "leak"), 8)


def _spread(found: Sequence[Any], most: int | None) -> Sequence[Any]:
    """So many of them, evenly from first to last."""
    if most is None or len(found) <= most:
        return found
    return [found[i * (len(found) - 1) // (most - 1)] for i in range(most)]


def _try(name: str, op: Op, ctx: Context) -> str:
    """The message of the first sample that fails a check, or an empty string."""
    case: Any = op.name
    with warnings.catch_warnings():
        # As `import mxcore` does: NaN is a result.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mxcore(\.|_cpu)")
        try:
            for case in _spread(cases(op, ctx), MOST.get(name)):
                CHECKS[name](case)
        except Exception as e:
            kind = "" if type(e) is AssertionError else f"{type(e).__name__}: "
            return f"{case!r}: {kind}{e}"
    return ""


def read_xfails(path: str) -> list[tuple[str, str, str]]:
    """The (operator, check, reason) lines of a file of expected failures; ``#`` starts a comment."""
    found = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            words = line.split("#", 1)[0].split(None, 2)
            if not words:
                continue
            if len(words) < 3:
                raise error(ValueError, f"{path}:{number}: expected 'operator check reason', got {line.strip()!r}")
            found.append(
                (
                    words[0],
                    words[1].replace("_", " ") if words[1].replace("_", " ") in CHECKS else words[1],
                    words[2].strip(),
                )
            )
    return found


def pytest_generate_tests(metafunc: Any) -> None:
    """One test per operator and check."""
    if "conformance_op" not in metafunc.fixturenames:
        return
    import pytest

    from .options import given

    ctx = context_of(given(metafunc.config, "--device", "cpu"))
    path = given(metafunc.config, "--xfails-file")
    xfails = read_xfails(path) if path else []
    params = []
    for op in operators(given(metafunc.config, "--ops", "*")):
        for name in ("samples", *CHECKS):
            marks = [
                pytest.mark.xfail(reason=r, strict=True)
                for o, c, r in xfails
                if fnmatchcase(op.name, o) and fnmatchcase(name, c)
            ]
            params.append(pytest.param(op, name, ctx, id=f"{ctx}-{op.name}-{name.replace(' ', '_')}", marks=marks[:1]))
    metafunc.parametrize("conformance_op, conformance_check, conformance_ctx", params)


def context_of(text: str) -> Context:
    """The context that ``cpu`` or ``cpu(1)`` names; an error if no plugin provides the device.

    Parameters
    ----------
    text : str
    """
    kind, _, index = text.partition("(")
    tables.devices.get(kind)
    return Context(kind, int(index.rstrip(")") or 0))


def test_conformance(conformance_op: Op, conformance_check: str, conformance_ctx: Context) -> None:
    """One operator passes one check with its samples."""
    if conformance_check == "samples":
        assert conformance_op.samples, f"operator {conformance_op.name} declares no Sample"
    elif conformance_op.samples:
        if not cases(conformance_op, conformance_ctx):
            import pytest

            pytest.skip(f"device {conformance_ctx.device_type!r} does not have the dtypes of its samples")
        if conformance_check != "declared" and not _runs(conformance_op, conformance_ctx):
            import pytest

            pytest.skip("it does not run as declared")
        message = _try(conformance_check, conformance_op, conformance_ctx)
        assert not message, message


@cache
def _runs(op: Op, ctx: Context) -> bool:
    """Whether an operator passes the check that all others need."""
    return not _try("declared", op, ctx)
