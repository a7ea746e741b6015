"""The helper of :mod:`.background`: ``python -m mxcore_cpu.compiler`` compiles what it reads of, into the cache.

A request is a line of JSON: a call of a kernel, which is made on blank arrays and without running any compiled code, or
a function of :mod:`.math` that chains call.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import queue
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np

__all__ = ["compile_request", "main"]


def compile_request(request: dict[str, Any]) -> None:
    """Compile what a request is about."""
    if "scalar" in request:
        from .fused.scalars import bitcode

        fn, types = request["scalar"]
        bitcode(fn, tuple(types))
        return
    import mxcore as mx
    from mxcore.plugin import find_op

    from .bindings.common import cpu

    op, entry = find_op(request["op"]), cpu.entries[request["index"]]
    if entry.op != op.name:
        raise ValueError(f"kernel {request['index']} is one of {entry.op}, not of {op.name}")
    ctx = mx.cpu()
    k = SimpleNamespace(
        xp=ctx.device.xp,
        device=ctx.device,
        ctx=ctx,
        is_train=request["train"],
        wanted=None if request["wanted"] is None else tuple(request["wanted"]),
        key=None,
        shapes=None,
        replaces=False,
    )
    p = op.parse(ast.literal_eval(request["params"]))
    ins = [_blank(a) for a in request["ins"]]
    if request["outs"] is None:
        entry.fn(k, p, *ins)
    else:
        entry.fn(k, p, [_blank(a) for a in request["outs"]], *ins)


def _blank(described: Any) -> Any:
    return None if described is None else np.zeros(tuple(described[0]), np.dtype(described[1]))


def _read(requests: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)  # whoever asked is gone


def main() -> None:
    """Serve until standard input ends."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    from . import background, jit
    from .cache import CODE

    jit.COMPILE_ONLY.on = True
    jit.driver_address()
    while True:
        with contextlib.suppress(Exception):  # it stays uncompiled, and the next process asks again
            compile_request(json.loads(requests.get()))
        if CODE.unkept:
            os._exit(background.FULL)  # the reader holds standard input


if __name__ == "__main__":
    main()
