"""Calls that hold a graph (compiled blocks, loops), taken apart on the tape for gradients of gradients.

Such a call runs again, operator by operator, and what is recorded takes its place: gradients of whatever order, and
states that backward moves, are those of a graph that never was one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from ..._core import tape, transfer
from ..._core.params import Params
from ..._core.state import state
from ..._locks import fork_safe_lock

__all__ = ["recorded", "unfolding"]

#: Held by who takes a call apart: threads that go through one graph do so once.
_lock = fork_safe_lock()


def unfolding(
    on_arrays: Callable[[Params, Sequence[Any], Any], list[Any]],
    keys: Callable[[Any], Sequence[Any]],
    held: Callable[[Any], Mapping[int, Any]],
) -> Callable[[Any, Sequence[Any]], Any]:
    """What takes calls of an operator apart, by ``on_arrays(p, inputs, ctx)``, which runs it again.

    Of what the first run saved, `keys` gives its random keys, and `held` what those inputs held that it has written to.
    """

    def unfold(node: Any, inputs: Sequence[Any]) -> Any:
        with _lock:
            if node.call.__class__ is not list:
                (k, saved), since = node.call, next(tape.serials)
                mode = state.train, state.keys
                before = [(inputs[i], value) for i, value in held(saved).items()]
                with _holding(before):
                    state.train, state.keys = k.is_train, [*keys(saved)]
                    try:
                        outs = on_arrays(node.params, inputs, k.ctx)
                    finally:
                        state.train, state.keys = mode
                nodes = recorded(outs, since)
                _forget_writes({id(x._st) for x, _ in before}, nodes)
                _put_before(node, nodes)
                node.call = [y._entry for y in outs]  # at once: others may be going through the graph
            return node.call

    return unfold


@contextmanager
def _holding(values: Sequence[tuple[Any, Any]]) -> Iterator[None]:
    """Let arrays hold other values meanwhile, whatever is written to them."""
    now = [(x, x.twin().copy(), x._st.version) for x, _ in values if x.wait_to_read() is None]
    try:
        for x, value in values:
            transfer.assign(x, transfer.wrap(value.copy(), x._st.ctx))
        yield
    finally:
        for x, value, version in now:
            transfer.assign(x, value)
            x.wait_to_read()
            x._st.version = version


def recorded(outputs: Sequence[Any], since: int = -1) -> list[Any]:
    """The nodes that outputs depend on, those that were recorded after a serial, in order."""
    found: dict[int, Any] = {}
    stack = [y._entry for y in outputs]
    while stack:
        e = stack.pop()
        if e is not None and e[0].plan is not None and e[0].serial > since and id(e[0]) not in found:
            found[id(e[0])] = e[0]
            stack += e[0].parents
    return sorted(found.values(), key=lambda n: n.serial)


def _forget_writes(storages: set[int], nodes: Sequence[Any]) -> None:
    """Let nodes not mind the writes that putting values back has taken back."""
    for n in nodes:
        ins, outs, versions = n.saved
        if storages and versions is not None:
            told = [
                -1 if x is not None and id(getattr(x, "_st", None)) in storages else v for x, v in zip(ins, versions)
            ]
            n.saved = ins, outs, told


def _put_before(node: Any, nodes: Sequence[Any]) -> None:
    """Give nodes serials right before another's: backward comes to them when whatever reads its outputs is done.

    They are odd multiples of a power of a half, so that the denominator of a serial tells how much room is before it.
    """
    room = Fraction(1, node.serial.denominator)
    step = room / (2 << len(nodes).bit_length())
    for i, n in enumerate(nodes):
        n.serial = node.serial - room + (2 * i + 1) * step
