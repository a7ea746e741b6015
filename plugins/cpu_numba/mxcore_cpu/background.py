"""Nobody waits for a compiler: with ``MXCORE_COMPILE=background`` a helper compiles, and reference bodies compute.

The first time that an operator is asked for with these parameters, shapes and dtypes, its kernel is tried apart, on
copies of what it would write. Where all the code that it calls has been compiled, it is taken, and it is the kernel
from then on. Otherwise the reference body computes this call and all like it, as long as the process lives, and the
helper is told of the call. So the numbers of a run do not change while it runs; another process, or a call with other
shapes, takes up what has been compiled by then.

The helper (:mod:`.compiler`) is one process a process: a new interpreter, of low priority, started when there is
something to compile. It reads requests from a pipe, and ends with whoever holds the other end. It makes the same calls
on blank arrays, which compiles what they need into the cache. A request that the pipe has no place for, since the
helper is behind or is stopped, is dropped. Where it cannot be told of a call (sparse values, state, random numbers),
where the cache cannot be written, and in a forked child, there is a wait, as ever.
"""

from __future__ import annotations

import ast
import contextvars
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from mxcore.plugin import KernelSet, error, find_op, fork_safe_lock

from .cache import CODE

__all__ = ["GuardedKernels", "NotCompiled", "ask", "enabled", "require", "trying"]

MODES = ("wait", "background")
#: Calls that are told apart; further ones wait.
_LIMIT = 4096


class NotCompiled(Exception):
    """Code that is not in the cache, and that nobody waits for."""


_trying = contextvars.ContextVar("mxcore_trying", default=False)
_forked = False
_lock = fork_safe_lock()
_helper: subprocess.Popen[bytes] | None = None
_starts = 0
#: The status with which the helper ends where what it compiles cannot be kept, and whether it has: who asks waits then.
FULL = 28
_full = False
_asked: set[str] = set()
#: What the pipe had no place for of a request that is in it otherwise.
_rest = b""


@functools.cache
def _mode() -> str:
    mode = os.environ.get("MXCORE_COMPILE") or MODES[0]
    if mode not in MODES:
        raise error(ValueError, f"MXCORE_COMPILE must be one of {', '.join(MODES)}, got {mode!r}")
    return mode


def enabled() -> bool:
    """Whether there is a helper to be asked, in this process and with this cache."""
    return _mode() == "background" and not _forked and CODE.places.write is not None


@contextmanager
def trying(on: bool = True) -> Iterator[None]:
    """Inside, code that would have to be compiled raises :class:`NotCompiled`, if `on`."""
    before = _trying.set(on)
    try:
        yield
    finally:
        _trying.reset(before)


def require() -> None:
    """Say, before something is compiled, that it is about to be.

    Raises
    ------
    NotCompiled
        Inside :func:`trying`.
    """
    if _trying.get():
        raise NotCompiled


# -- the helper --------------------------------------------------------------------------------------------------------


def ask(request: dict[str, Any]) -> None:
    """Tell the helper what to compile; once, and without waiting for anything: not where its pipe is full."""
    global _rest
    line = json.dumps(request)
    with _lock:
        if line in _asked:
            return
        for _ in range(2):  # it may have been ended
            try:
                pipe = _running().stdin
                assert pipe is not None
                data = _rest + line.encode() + b"\n"
                written = pipe.write(data) or 0  # None where nothing has place
                if written > len(_rest):
                    _asked.add(line)
                    _rest = data[written:]
                else:
                    _rest = _rest[written:]
                return
            except (OSError, ValueError):
                _stop()


def _running() -> subprocess.Popen[bytes]:
    global _helper, _starts
    if _helper is None or _helper.poll() is not None:
        _stop()
        if _full:
            raise OSError("what the helper compiles cannot be kept")
        _starts += 1
        if _starts > 3:
            raise OSError("the helper ends again and again")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "MXCORE_PREFER"))}
        env |= {
            "MXCORE_COMPILE": "wait",
            "MXCORE_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        _helper = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.compiler"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,  # an interrupt of the keyboard is not for it
        )
        if _helper.stdin is not None and hasattr(os, "set_blocking"):
            os.set_blocking(_helper.stdin.fileno(), False)
    return _helper


def _stop() -> None:
    global _helper, _rest, _full
    found, _helper, _rest = _helper, None, b""
    if found is not None:
        try:
            found.kill()
            _full |= found.wait(1) == FULL
            if found.stdin is not None:
                found.stdin.close()
        except (OSError, subprocess.TimeoutExpired):
            pass


def _in_child() -> None:
    """Forget the parent's helper: the child's end of its pipe is closed, so that it ends with the parent."""
    global _helper, _forked
    found, _helper, _forked = _helper, None, True
    if found is not None and found.stdin is not None:
        with suppress(OSError):
            found.stdin.close()
        found.returncode = 0  # it is nobody's child here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


# -- kernels -----------------------------------------------------------------------------------------------------------


class GuardedKernels(KernelSet):
    """Kernels whose place the reference bodies take where code is not compiled; as they are where everybody waits."""

    def kernel(self, op: Any, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        declare = super().kernel(op, **options)
        if _mode() == "wait":
            return declare
        name, out = op if isinstance(op, str) else op.name, options.get("out", False)

        def deco(fn: Callable[..., Any]) -> Callable[..., Any]:
            declare(_Guard(name, len(self), fn, out))
            return fn

        return deco


class _Guard:
    """A kernel, or the reference body of its operator: as was decided when it was first asked for."""

    def __init__(self, op: str, index: int, fn: Callable[..., Any], out: bool) -> None:
        self.op, self.index, self.fn, self.out = op, index, fn, out
        self.__name__ = getattr(fn, "__name__", op)
        self.decided: dict[Any, bool] = {}

    @functools.cached_property
    def static(self) -> tuple[str, ...] | None:
        """Parameters that may decide which code is called; None for an operator that the helper cannot call."""
        op = find_op(self.op)
        if op.stateful or op.random:
            return None
        return tuple(n for n, spec in op.params.items() if not spec.dynamic)

    def __call__(self, k: Any, p: Any, *args: Any) -> Any:
        outs, ins = (args[0], args[1:]) if self.out else ((), args)
        key = self._key(k, p, outs, ins) if enabled() else None
        if key is None:
            return self.fn(k, p, *args)
        decided = self.decided.get(key)
        if decided is None:
            return self._decide(key, k, p, outs, ins)
        return self.fn(k, p, *args) if decided else self._body(k, p, outs, ins)

    def _key(self, k: Any, p: Any, outs: Sequence[Any], ins: Sequence[Any]) -> Any:
        if self.static is None:
            return None
        arrays = [_described(a) for a in (*outs, *ins)]
        if "?" in arrays:
            return None
        key = (tuple(getattr(p, n, None) for n in self.static), tuple(arrays), k.is_train, k.wanted)
        try:
            known = key in self.decided
        except TypeError:
            return None
        return key if known or len(self.decided) < _LIMIT else None

    def _decide(self, key: Any, k: Any, p: Any, outs: Sequence[Any], ins: Sequence[Any]) -> Any:
        """Try the kernel on copies of what it may write."""
        copies = [None if o is None else o.copy() for o in outs]
        same = {_place(o): c for o, c in zip(outs, copies) if o is not None}
        own = [same[_place(a)] if isinstance(a, np.ndarray) and _place(a) in same else a for a in ins]
        for i, a in enumerate(own):
            if (
                a is ins[i]
                and isinstance(a, np.ndarray)
                and any(np.may_share_memory(a, o) for o in outs if o is not None)
            ):
                own[i] = a.copy()
        try:
            with trying(not _full):
                result = self.fn(k, p, copies, *own) if self.out else self.fn(k, p, *own)
        except NotCompiled:
            self.decided[key] = False
            self._ask(k, p, outs, ins)
            return self._body(k, p, outs, ins)
        self.decided[key] = True
        for o, c in zip(outs, copies):
            if o is not None:
                o[...] = c
        return result

    def _body(self, k: Any, p: Any, outs: Sequence[Any], ins: Sequence[Any]) -> Any:
        body = find_op(self.op).body
        assert body is not None
        values = body(k, p, *ins)
        if not self.out:
            return values
        values = values if isinstance(values, (list, tuple)) else [values]
        written = [o for o in outs if o is not None]
        values = [
            np.array(v) if isinstance(v, np.ndarray) and any(np.may_share_memory(v, o) for o in written) else v
            for v in values
        ]
        for o, v in zip(outs, values):
            if o is not None and v is not None:
                o[...] = v
        return None

    def _ask(self, k: Any, p: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        params = repr({n: getattr(p, n) for n in find_op(self.op).params if getattr(p, n, None) is not None})
        try:
            ast.literal_eval(params)
        except ValueError:
            return
        ask(
            {
                "op": self.op,
                "index": self.index,
                "params": params,
                "train": bool(k.is_train),
                "wanted": None if k.wanted is None else [bool(w) for w in k.wanted],
                "outs": [_described(a) for a in outs] if self.out else None,
                "ins": [_described(a) for a in ins],
            }
        )


def _described(a: Any) -> Any:
    """Shape and dtype of a dense value; "?" for what is none."""
    if a is None:
        return None
    if getattr(a, "stype", "default") != "default" or not hasattr(a, "shape"):
        return "?"
    return tuple(a.shape), np.dtype(a.dtype).str


def _place(a: Any) -> Any:
    return a.__array_interface__["data"][0], a.shape, a.strides
