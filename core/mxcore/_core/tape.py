"""The tape of automatic differentiation: what is recorded. :mod:`.reverse` goes back along it.

A tape node holds its operator, parameters, links to its parents and what its gradient rule asked for; never one of its
own outputs, so dropping the last output frees the graph by reference count.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any
from weakref import ref

from .array import Array, Like
from .errors import error
from .gradplan import GradPlan, plan_of
from .op import Op
from .params import Params
from .state import state
from .transfer import check_writable, is_view

__all__ = ["Freed", "Leaf", "TapeNode", "mark", "read_later", "record", "serials"]

#: The order of what happens to tapes, across threads.
serials = itertools.count()
_entry = operator.attrgetter("_entry")
#: What a node keeps whose rule asks for nothing: no inputs, no outputs.
_NOTHING: Any = ((), None, None)


class Leaf:
    """A variable that gradients end in: its gradient array and how to write it ('write', 'add', 'null')."""

    __slots__ = ("grad", "req", "flows", "fresh", "large")
    op, plan, live = None, None, True

    def __init__(self, grad: Array | None, req: str) -> None:
        self.grad, self.req, self.flows = grad, req, req != "null"
        #: Whether it pays to hand a buffer over to it instead of copying: a copy on a device with a queue is a launch.
        self.large = grad is not None and (
            grad.stype != "default" or grad._data.nbytes >= 1 << 16 or grad._st.ctx.device.async_
        )
        #: Whether a backward has written the gradient since somebody last set this to False.
        self.fresh = False


class TapeNode:
    """One recorded operator call: parents (`inputs`) and what its rule asked to keep (`saved`).

    Of a stateful operator it holds context and state, a tuple (`call`). One that holds a graph may run again, operator
    by operator, for gradients of gradients: then `call` is a list of where its outputs stand on the tape since.

    Beside that a backward writes nothing to it but that it is `freed`: others may go through the same graph. It is
    `live` unless every variable below gets zeros through it, as through a comparison.
    """

    __slots__ = ("params", "inputs", "plan", "saved", "specs", "serial", "call", "freed", "__weakref__")
    flows = live = True

    params: Params
    inputs: Any
    plan: GradPlan
    saved: Any
    specs: Any
    serial: Any
    call: Any
    freed: int

    @property
    def op(self) -> Op:
        """The operator."""
        return self.plan.op

    @property
    def parents(self) -> Any:
        """Where gradients go on from here: entries; None if a backward has used it up."""
        return call if (call := self.call).__class__ is list else self.inputs

    def __lt__(self, other: TapeNode) -> Any:
        return self.serial > other.serial  # a heap gives the latest first


#: A node that is not `live`.
_Still: type[TapeNode] = type("_Still", (TapeNode,), {"__slots__": (), "live": False})


class Freed(TapeNode):
    """A node that a backward has used up: what was recorded before cannot be differentiated any more.

    To what is recorded from now on its outputs are constants. `freed` tells when; a node becomes one by assignment to
    its class.
    """

    __slots__ = ()
    flows = False
    plan = None  # type: ignore[assignment]  # as a leaf's

    @property
    def op(self) -> Op:
        return TapeNode.__dict__["plan"].__get__(self).op  # type: ignore[no-any-return]


def record(
    op: Op, p: Params, inputs: Sequence[Any], outputs: Sequence[Any], call: Any = None, plan: GradPlan | None = None
) -> None:
    """Write a call on the tape, if any input is on it.

    `call` is (k, state) of a stateful operator, `plan` its gradient rule where that is not the operator's own.

    Whoever stands in the place of the tape (`state.record`, else True) is told of all calls.
    """
    if state.record is not True:
        state.record(op, p, inputs, outputs, call)
        return
    entries = [inputs[0]._entry] if len(inputs) == 1 else [*map(_entry, inputs)]
    live = None
    for e in entries:
        if e is not None and e[0].flows and (live := e[0].live):
            break
    if live is None:
        return
    plan = plan or op.grad_plan or plan_of(op)
    node = (TapeNode if live and plan.rule is not None or op.backward_rule is not None else _Still)()
    node.params = p
    node.inputs = entries
    node.plan = plan
    node.saved = _NOTHING if plan.keep is None else plan.keep(inputs, outputs, p)
    node.serial, node.call = next(serials), call
    if len(entries) > 1 and (versions := node.saved[2]):  # the only one is no constant
        for x, e, v in zip(inputs, entries, versions):
            if (e is None or not e[0].flows) and v >= 0:  # who writes to a constant asks
                readers = x._st.readers = getattr(x._st, "readers", None) or set()
                readers.add(ref(node, readers.discard))
    if len(outputs) == 1:
        node.specs = None
        outputs[0]._entry = (node, 0)
    else:
        node.specs = [None if y is None else Like(y) for y in outputs]
        for i, y in enumerate(outputs):
            if y is not None:
                y._entry = (node, i)


def read_later(op: Op, p: Params, inputs: Sequence[Any], outs: Sequence[Any] = ()) -> list[Any]:
    """Those inputs of a call that its gradient will read, if it is recorded, and views that it writes to.

    Gradients would not flow through the arrays of which these are parts.
    """
    return (
        [
            x
            for x, i in zip(inputs, p._sig.slots)
            if i in plan_of(op).keeps_inputs or is_view(x) and any(x is o for o in outs)
        ]
        if any(e is not None and e[0].flows and e[0].live for e in map(_entry, inputs))
        else []
    )


def mark(x: Array, grad: Array | None, req: str) -> None:
    """Make `x` a variable: gradients end in it and are written to `grad`."""
    if req not in ("write", "add", "null"):
        raise error(ValueError, f"grad_req must be 'write', 'add' or 'null', got {req!r}")
    if grad is not None:
        check_writable(grad, "a variable's gradient")
    x._entry = (Leaf(grad, req), 0)
