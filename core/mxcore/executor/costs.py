"""What the steps of a bound graph have to do at least: floating-point operations and bytes, by their shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..looking import attribute

if TYPE_CHECKING:
    from .executor import Executor
    from .program import Program, Step

__all__ = ["COMPILED", "Cost", "costs", "program_of"]

#: Who computes a fused chain: the device, by code that it makes.
COMPILED = "compiled chain"


class Cost(NamedTuple):
    """One step.

    Attributes
    ----------
    op, node : str
        Names of operator and node, as the profiler has them.
    owner : str
        Whose kernel runs, or `COMPILED`.
    flops : float
        Floating-point operations of its products; 0 for an operator that has none.
    bytes : int
        What it reads and writes once, at least.
    shapes : tuple
        Of its inputs.
    consists : tuple of str
        What it computes, in words, if that is more than its operator.
    """

    op: str
    node: str
    owner: str
    flops: float
    bytes: int
    shapes: tuple[Any, ...]
    consists: tuple[str, ...] = ()


def program_of(executor: Executor, train: bool) -> Program:
    """The program of a bound graph: the one that computes gradients, or the one of inference.

    Parameters
    ----------
    executor : Executor
    train : bool
    """
    return executor._instance(train, train)[0].program


def costs(program: Program) -> list[Cost]:
    """The steps of a program that compute something, in their order.

    Parameters
    ----------
    program : Program

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.executor.costs import costs, program_of
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, no_bias=True, name="fc")
    >>> [found] = costs(program_of(net.simple_bind(mx.cpu(), x=(2, 5), grad_req="null"), False))
    >>> found.op, found.node, found.flops, found.bytes
    ('FullyConnected', 'fc', 60.0, 124)
    """
    return [_cost(program, step) for step in program.steps if step.head < 0 and not step.view]


def _cost(program: Program, step: Step) -> Cost:
    shaped = step.op.signature(step.p).like  # only the shapes of these are read
    ins, outs = ([program.specs[s] for s in slots] for slots in (step.ins, step.outs))
    touched = [s for i, s in enumerate(ins) if i not in shaped] + outs
    size = sum(s.size * s.dtype.itemsize for s in touched if s.fixed)
    flops = 0.0
    if all(s.fixed for s in touched):
        flops = float(step.op.facet("flops", step.p, [s.shape for s in ins], [s.shape for s in outs], default=0))
    compiled = getattr(step.op, "fused", None) is not None
    owner = COMPILED if compiled else attribute(step.op, "owner", step.bound.owner)
    consists = tuple(attribute(step.op, "consists", ()))
    return Cost(step.op.name, step.node.name, owner, flops, size, tuple(s.shape for s in ins), consists)
