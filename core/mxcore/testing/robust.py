"""Whether an operator stands up to a use that nobody meant: it does as its rules say, or raises a clear error."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import autograd, symbol, util
from .._core import dispatch
from .._core.context import Context, current_context
from .._core.errors import MXNetError
from .._core.state import state
from ..ndarray import NDArray, array
from ..parameters import GraphParam
from .mutate import Use

__all__ = ["Hang", "bounded_memory", "check_use", "deadline"]


class Hang(BaseException):
    """A call did not come back; no ``except Exception`` holds it up."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `Hang` in the body after so many seconds, in the main thread and where there are timers."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise Hang(f"no answer after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def bounded_memory(more: int = 2**30) -> Iterator[None]:
    """Let the process take so many bytes more, where the system can enforce that: beyond lies a MemoryError."""
    try:
        import resource

        with open("/proc/self/statm") as f:
            used = int(f.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def check_use(use: Use, ctx: Context | None = None, seconds: float = 60.0) -> str:
    """Check one use: eager, recorded and differentiated, in inference, and bound.

    Each way gives an answer or an MXNetError that names the operator; answers have the shapes and dtypes of the rules,
    and are the same in each way. There is no other exception, no warning but that of an ignored parameter, no wait
    without end, and the state of the process is as before.

    Parameters
    ----------
    use : Use
    ctx : Context, optional
    seconds : float
        How long it may take.

    Returns
    -------
    str
        ``'result'`` or ``'error'``.

    Raises
    ------
    AssertionError
        Which says what was wrong, and with which use.
    """
    ctx = ctx or current_context()
    before = _situation()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        # As `import mxcore` does: NaN is a result.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mxcore(\.|_cpu)")
        try:
            with deadline(seconds), ctx:
                wrong, kind = _ways(use)
        except Hang as e:
            raise AssertionError(f"{use!r}: {e}") from e
    after = _situation()
    if after != before:
        wrong.append(f"it left the process changed: {before} before, {after} after")
    wrong += [f"it warns: {w.category.__name__}: {w.message}" for w in said if _IGNORED not in str(w.message)]
    if wrong:
        raise AssertionError(f"{use!r}: " + "; ".join(wrong))
    return kind


#: What operators without parameters say of any that they are given.
_IGNORED = "has no parameters; ignored: "


def _situation() -> dict[str, Any]:
    """What an operator must leave alone."""
    return {
        "recording": autograd.is_recording(),
        "training": autograd.is_training(),
        "context": str(current_context()),
        "np_shape": util.is_np_shape(),
        "errstate": np.geterr(),
        "thread": sorted(k for k in state.__dict__),
    }


def _tried(fn: Callable[[], Any]) -> Any:
    try:
        return fn()
    except Exception as e:
        return e


def _facts(outs: Any) -> list[tuple[tuple[int, ...], str]]:
    return [(tuple(y.shape), np.dtype(y.dtype).name) for y in outs]


def _ways(use: Use) -> tuple[list[str], str]:
    """(what is wrong, 'result' or 'error')."""
    wrong: list[str] = []
    inner = any(isinstance(s, GraphParam) for s in use.op.params.values())  # whose operators name themselves

    def fair(way: str, found: Any, names: bool = True) -> bool:
        """Whether there is a result; enters exceptions that are not clear errors."""
        if not isinstance(found, Exception):
            return True
        # Dispatch explains what a rule raises, whatever it is.
        fault = found.__cause__ if "rule failed: " in str(found) else found
        if not isinstance(fault, MXNetError):
            wrong.append(f"{way}, it raises {type(fault).__name__}: {fault}")
        elif names and use.op.name not in str(found) and not (inner and "operator " in str(found)):
            wrong.append(f"{way}, its error does not name the operator: {found}")
        return False

    eager = _tried(lambda: _eager(use))
    ran = fair("eager", eager)
    if use.arrays_only():
        graph = _tried(lambda: _compose(use))
        if fair("composing a graph", graph) and len(graph):
            inferred = _tried(lambda: _inferred(use, graph))
            if fair("in inference", inferred) and ran:
                for i, ((shape, dtype), (s, t)) in enumerate(zip(_facts(eager), zip(*inferred))):
                    if s is not None and shape != s or t is not None and dtype != t:
                        wrong.append(f"output {i} is {dtype}{list(shape)}, inference says {t}{s and list(s)}")
            elif ran:
                wrong.append(f"it runs eagerly, inference says: {inferred}")
            bound = _tried(lambda: _bound(use, graph))
            if (
                fair("bound", bound, not isinstance(bound, MemoryError))
                and bound is not None
                and ran
                and _facts(bound) != _facts(eager)
            ):
                wrong.append(f"bound, it gives {_facts(bound)}, eager {_facts(eager)}")
            elif ran and isinstance(bound, MXNetError):
                wrong.append(f"it runs eagerly, bound it says: {bound}")
        elif ran and isinstance(graph, Exception):
            wrong.append(f"it runs eagerly, composing a graph says: {graph}")
        if ran:
            fair("in backward", _tried(lambda: _backward(use)), False)
    return wrong, "result" if ran else "error"


def _arrays(use: Use) -> list[Any]:
    return [
        array(a, dtype=a.dtype)
        if isinstance(a, np.ndarray) and a.ndim
        else _scalar(a)
        if isinstance(a, np.ndarray)
        else a
        for a in use.inputs
    ]


def _scalar(a: Any) -> NDArray:
    """An array without dimensions."""
    with util.np_shape(True):
        return array(a.reshape(1), dtype=a.dtype).reshape(())


def _call(use: Use, xs: list[Any]) -> list[Any]:
    before = _situation()
    try:
        r = dispatch.call(use.op, xs, dict(use.kwargs), cls=NDArray)
    finally:
        if _situation() != before:  # seen here, since the scopes around the call put it back
            raise AssertionError(f"it left the process changed: {before} before, {_situation()} after")
    return list(r) if isinstance(r, (list, tuple)) else [r]


def _eager(use: Use) -> list[Any]:
    with autograd.train_mode() if use.train else autograd.predict_mode():
        outs = _call(use, _arrays(use))
        for y in outs:
            y.wait_to_read()
    return outs


def _backward(use: Use) -> None:
    xs = _arrays(use)
    for x in xs:
        if np.dtype(x.dtype).kind == "f":
            x.attach_grad()
    with autograd.record(use.train):
        outs = _call(use, xs)
    heads = [y for y in outs if np.dtype(y.dtype).kind == "f" and y._entry is not None]
    if heads:
        autograd.backward(heads, train_mode=use.train)
    for x in xs:
        if getattr(x, "grad", None) is not None:
            x.grad.wait_to_read()


def _names(use: Use) -> list[str]:
    return [f"in{i}" for i in range(len(use.inputs))]


def _compose(use: Use) -> Any:
    return symbol.compose(
        use.op.name, [symbol.Variable(n) for n in _names(use)], {**use.kwargs, "name": "node"}, use.op
    )


def _inferred(use: Use, graph: Any) -> tuple[list[Any], list[Any]]:
    """Shapes and dtypes of the outputs, None where unknown."""
    with util.np_shape(True):
        shapes = graph.infer_shape_partial(**{n: a.shape for n, a in zip(_names(use), use.inputs)})[1]
        dtypes = graph.infer_type_partial(**{n: a.dtype for n, a in zip(_names(use), use.inputs)})[1]
    known = [None if s is None or -1 in s else tuple(s) for s in shapes]
    return known, [None if t is None else np.dtype(t).name for t in dtypes]


def _bound(use: Use, graph: Any) -> Any:
    """Outputs of a forward pass; None if the graph made variables of its own for inputs that are missing."""
    args = dict(zip(_names(use), _arrays(use)))
    states = graph.list_auxiliary_states()
    if set(graph.list_arguments()) | set(states) != set(args):
        return None
    aux = {n: args.pop(n) for n in states}
    with util.np_shape(True):
        outs = graph.bind(current_context(), args, grad_req="null", aux_states=aux).forward(is_train=use.train)
        for y in outs:
            y.wait_to_read()
    return outs
