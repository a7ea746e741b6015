"""What nodes mean element by element: an expression over their inputs, how those broadcast, and a reduction at the end.

Most operators say it themselves (`Op.expr`). Here are those whose meaning depends on parameters, on shapes, or differs in
corner cases from the function of the same name in :mod:`mxcore._core.expr`.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._core.expr import Expr, Tree
from .._core.graph import Graph, Node
from .._core.infer import known
from .._core.kernels import Spec
from .._core.op import Op
from .._core.params import Int
from ..ops.rules import axes_of

__all__ = ["BIAS", "Part", "constant_of", "functions_of", "part_of", "substitute"]

Shape = tuple[int, ...]
_DTYPES = (np.dtype("float32"), np.dtype("float64"))

_LEAKY = {
    "leaky": "data if data > 0 else data * slope",
    "elu": "data if data > 0 else slope * expm1(data)",
    "selu": "1.0507009873554805 * (data if data > 0 else 1.6732632423543772 * expm1(data))",
    "gelu": "data * (0.5 * (1 + erf(data * 0.7071067811865476)))",
    "prelu": "data if data > 0 else data * gamma",
}
_LEAKY_BACK = {
    "leaky": "dy if data > 0 else dy * slope",
    "elu": "dy if data > 0 else dy * (slope * exp(data))",
    "selu": "1.0507009873554805 * (dy if data > 0 else dy * (1.6732632423543772 * exp(data)))",
    "gelu": "dy * (0.5 * (1 + erf(data * 0.7071067811865476)) + data * (exp(-0.5 * data * data) * 0.3989422804014327))",
}
_ACTIVATION = {"relu": "relu(data)", "sigmoid": "sigmoid(data)", "tanh": "tanh(data)", "softrelu": "softplus(data)",
               "softsign": "data / (1 + abs(data))"}
_ACTIVATION_BACK = {
    "relu": "dy * (1 if out > 0 else out)", "sigmoid": "dy * out * (1 - out)", "tanh": "dy * (1 - out * out)", "softrelu": "dy * -expm1(-out)",
    "softsign": "dy * square(1 - abs(out))"}
#: Terms of a sum that one expression holds; more operands than this make no chain.
_TERMS = 24
#: Levels of an expression that is fused; the body computes a deeper one.
_DEPTH = 100
#: Exponents with an expression of their own. NumPy treats most of them so too.
_POWERS = {2.0: "square(data)", 1.0: "data", 0.5: "sqrt(data)", -1.0: "reciprocal(data)", 3.0: "data * data * data",
           -0.5: "rsqrt(data)"}

#: Operator -> expression, or a function of the parameters that gives it (None: not an elementwise one).
EXPRESSIONS: dict[str, str | Callable[[Any], str | None]] = {
    "Activation": lambda p: _ACTIVATION[p.act_type],
    "_backward_Activation": lambda p: _ACTIVATION_BACK[p.act_type],
    "LeakyReLU": lambda p: _LEAKY.get(p.act_type),
    "_backward_LeakyReLU": lambda p: _LEAKY_BACK.get(p.act_type),
    "_backward_rrelu": "dy if data > 0 else dy * mask",
    "where": "x if condition != 0 else y",
    "add_n": lambda p: " + ".join(f"arg{i}" for i in range(p.num_args)) if p.num_args <= _TERMS else None,
    "smooth_l1": "0.5 * scalar * scalar * data * data if abs(data) * (scalar * scalar) < 1 else abs(data) - 0.5 / (scalar * scalar)",
    "_power_scalar": lambda p: _POWERS.get(float(p.scalar), "power(data, scalar)"),
    # MXNet's rules for a divisor of zero and for halves.
    "_mod": "0 if rhs == 0 else mod(lhs, rhs)", "broadcast_mod": "0 if rhs == 0 else mod(lhs, rhs)",
    "_mod_scalar": "0 if scalar == 0 else mod(data, scalar)", "_rmod_scalar": "0 if data == 0 else mod(scalar, data)",
    "rint": "floor(data) if data - floor(data) <= ceil(data) - data else ceil(data)",
    "round": "floor(data + 0.5) if data >= 0 else ceil(data - 0.5)",
    "_square_sum": "data * data",
}
#: Operators that give their first input back, in another dtype or broadcast to another shape at most.
SAME = frozenset("""
    _copy BlockGrad make_loss _identity_with_attr_like_rhs Cast amp_cast _cast_like broadcast_like broadcast_to broadcast_axis
    reshape Reshape reshape_like Flatten expand_dims squeeze _sum_like _spread _bias_like _bias_sum sum mean max min
""".split())
_RESHAPES = frozenset("reshape Reshape reshape_like Flatten expand_dims squeeze".split())
CONSTANTS = {"zeros_like": 0.0, "ones_like": 1.0}
_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "max", "min": "min", "_square_sum": "sum"}


class Recipe(NamedTuple):
    """What a part of a chain computes by its operator's own body; fields as those of `Part`."""

    op: Any
    params: Any
    sources: tuple[Any, ...]
    out: Shape
    dtype: Any

    @property
    def key(self) -> Any:
        """Equal for recipes that compute the same, but for dynamic parameters."""
        return id(self.op), self.params._key, self.sources, self.out, self.dtype

    def compute(self, k: Any, params: Any, arrays: list[Any]) -> Any:
        """The output with these parameters, from an array for each operand."""
        values = []
        for source, shape in self.sources:
            if type(source) is int:
                values.append(arrays[source])
            else:
                values.append(Spec(shape, self.dtype) if source is None else k.xp.full(shape, source, self.dtype))
        found = self.op.body(k, params, *values)
        if isinstance(found, (tuple, list)):
            found, = found
        if found.dtype != self.dtype:
            found = found.astype(self.dtype)
        return found if found.shape == self.out else found.reshape(self.out)


class Part:
    """One node as a step of a chain.

    Attributes
    ----------
    node : Node
    tree : tuple
        Over the names ``x0``, ``x1``, … of `operands` and ``s0``, … of `scalars`.
    operands : list of (entry, shape)
        What it reads, each with the shape in which it broadcasts to `shape` (as many elements as the entry has).
    scalars : list of (float, str or None)
        Numbers given at run time, and the dynamic parameter that a number is the value of.
    shape : tuple of int
        What it runs over.
    reduce : str or None
        'sum', 'mean', 'max' or 'min' of its value.
    kept : tuple of int
        Shape of the output, reduced axes with length 1.
    out : tuple of int
        Shape of the output as the node has it.
    sources : list of (int, float or None, shape)
        For each input of the node: the operand it is, or the constant it is, or None where only its shape matters.
    work, folded : bool
        Whether it computes anything, and whether it took in a constant.
    """

    __slots__ = ("node", "tree", "operands", "scalars", "sources", "shape", "out", "reduce", "kept", "dtype", "work", "folded")

    def __init__(self, node: Node, tree: Tree, operands: list[Any], scalars: list[Any], sources: list[Any], shape: Shape, dtype: Any) -> None:
        self.node, self.tree, self.operands, self.scalars, self.sources = node, tree, operands, scalars, sources
        self.shape = self.out = self.kept = shape
        self.dtype = dtype
        self.reduce: str | None = None
        self.work, self.folded = tree[0] not in ("name", "num"), any(type(source) is float for source, _ in sources)

    def recipe(self) -> Recipe:
        """What it computes, without the graph around it."""
        return Recipe(self.node.op, self.node.params, tuple(self.sources), self.out, self.dtype)


def _add_bias(k: Any, p: Any, data: Any, bias: Any) -> Any:
    return data + bias.reshape(tuple(-1 if i == p.axis else 1 for i in range(data.ndim)))


#: The bias of a product as an operator of its own, for use inside chains.
BIAS = Op("_add_bias", _add_bias, inputs="data bias", params={"axis": Int()}, grad=None, expr="data + bias", alias="data->output")

_parsed: dict[str, Tree] = {}


def tree_of(text: str) -> Tree:
    """The tree of an expression; parsed once."""
    tree = _parsed.get(text)
    if tree is None:
        tree = _parsed[text] = Expr(text).tree
    return tree


def substitute(tree: Tree, names: dict[str, Tree]) -> Tree:
    """The tree with names replaced by trees."""
    if tree[0] == "name":
        return names[tree[1]]
    return tuple(substitute(t, names) if isinstance(t, tuple) else t for t in tree)


def functions_of(tree: Tree) -> set[str]:
    """The functions an expression calls."""
    found: set[str] = {tree[1]} if tree[0] == "call" else set()
    return found.union(*(functions_of(t) for t in tree[1:] if isinstance(t, tuple)))


def _expression(node: Node) -> Tree | None:
    op, name = node.op, node.op.name
    if name in SAME:
        return ("name", node.params._sig.inputs[0])
    known_ = EXPRESSIONS.get(name)
    if known_ is not None:
        text = known_(node.params) if callable(known_) else known_
        return None if text is None else tree_of(text)
    return None if op.expr is None or _deep(op.expr.tree) else op.expr.tree


def _deep(tree: Tree) -> bool:
    """Whether a tree is deeper than those who walk it, recursively and maybe deep in the stack already, should go."""
    level = [tree]
    for _ in range(_DEPTH):
        level = [t for node in level for t in node[1:] if isinstance(t, tuple)]
        if not level:
            return False
    return True


def part_of(node: Node, graph: Graph, entries: Callable[[Any], Any] = lambda e: e) -> Part | None:
    """The node as a part of a chain, or None if it is not elementwise on dense float32 or float64 arrays of known shapes.

    Parameters
    ----------
    graph : Graph
        With shapes, dtypes and storage types.
    entries : callable
        Entry -> the entry to read in its place.
    """
    op, p = node.op, node.params
    if op is None or op.stateful or op.body is None:
        return None
    sig = p._sig
    if sig.n_out != 1 or sig.random or sig.mutates or sig.aux or node.forward is not None:
        return None
    tree = _expression(node)
    if tree is None:
        return None
    out = (node, 0)
    shape, dtype = graph.shapes.get(out), graph.dtypes.get(out)
    if dtype not in _DTYPES or not known(shape) or graph.stypes.get(out, "default") != "default":
        return None
    names: dict[str, Tree] = {}
    operands: list[Any] = []
    sources: list[Any] = []
    used = _names(tree)
    for i, (name, entry) in enumerate(zip(sig.inputs, node.inputs)):
        value = constant_of(entry[0]) if graph.dtypes.get(entry) == dtype else None
        if name not in used or i in sig.like:
            sources.append((None, graph.shapes.get(entry)))
            continue
        if (not known(graph.shapes.get(entry)) or graph.dtypes.get(entry) != dtype
                or graph.stypes.get(entry, "default") != "default"):
            return None
        if value is not None:
            names[name] = ("num", value)
            sources.append((value, graph.shapes[entry]))
            continue
        names[name] = ("name", f"x{len(operands)}")
        sources.append((len(operands), graph.shapes[entry]))
        operands.append((entries(entry), tuple(graph.shapes[entry])))
    scalars: list[Any] = []
    for name in sorted(used - names.keys()):
        value = getattr(p, name, None)
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            return None
        names[name] = ("name", f"s{len(scalars)}")
        scalars.append((float(value), name if op.params[name].dynamic else None))
    part = Part(node, substitute(tree, names), operands, scalars, sources, tuple(shape), dtype)
    return _fitted(part) if operands and math.prod(part.shape) else None


def constant_of(node: Node) -> float | None:
    """The value that all elements of a node's output have, if it is a constant."""
    return None if node.op is None else CONSTANTS.get(node.op.name)


def _names(tree: Tree) -> set[str]:
    if tree[0] == "name":
        return {tree[1]}
    return set().union(*(_names(t) for t in tree[1:] if isinstance(t, tuple)))


def _fitted(part: Part) -> Part | None:
    """Complete a part whose operands do not broadcast as in NumPy, or that reduces; None if its shapes do not fit."""
    node, out = part.node, part.shape
    name, p = node.op.name, node.params
    if name in _REDUCTIONS:
        data = part.operands[0][1]
        return _reduced(part, data, axes_of(p.axis, len(data), p.exclude), _REDUCTIONS[name])
    if name == "_sum_like":
        data = part.operands[0][1]
        if data != out:
            if len(out) > len(data):  # leading ones, dropped by an assignment
                out = out[len(out) - len(data):]
            full = (1,) * (len(data) - len(out)) + out
            return _reduced(part, data, tuple(i for i, d in enumerate(full) if d == 1 != data[i]), "sum")
    elif name == "_bias_sum":
        data = part.operands[0][1]
        at = _upon(p, len(data))
        return _reduced(part, data, tuple(i for i in range(len(data)) if i != at or out[0] == 1), "sum")
    elif name == "_bias_like":
        _shape_operand(part, 0, _along(part.operands[0][1], _upon(p, len(out)), len(out)))
    elif name == "_spread":
        axes = axes_of(p.axis, len(out), p.exclude)
        _shape_operand(part, 0, tuple(1 if i in axes else d for i, d in enumerate(out)))
        if p.mean:
            part.scalars.append((float(math.prod(out[a] for a in axes)), None))
            part.tree = ("/", part.tree, ("name", f"s{len(part.scalars) - 1}"))
            part.work = True
    elif name == "LeakyReLU" and len(part.operands) == 2:
        _shape_operand(part, 1, _along(part.operands[1][1], min(1, len(out) - 1), len(out)))
    elif name == BIAS.name:
        _shape_operand(part, 1, _along(part.operands[1][1], p.axis, len(out)))
    elif name == "where" and type(part.sources[0][0]) is int:
        condition = part.operands[0][1]
        _shape_operand(part, 0, condition + (1,) * (len(out) - len(condition)))
    elif name in _RESHAPES and part.operands[0][1] != out:
        return None
    return part if all(_broadcasts(s, out) for _, s in part.operands) else None


def _upon(p: Any, ndim: int) -> int:
    return min(p.axis, ndim - 1) if p.axis >= 0 else p.axis + ndim


def _along(vector: Shape, axis: int, ndim: int) -> Shape:
    return tuple(vector[0] if i == axis else 1 for i in range(ndim))


def _shape_operand(part: Part, i: int, shape: Shape) -> None:
    entry, old = part.operands[i]
    part.operands[i] = (entry, shape if math.prod(shape) == math.prod(old) else old)


def _broadcasts(shape: Shape, to: Shape) -> bool:
    return len(shape) <= len(to) and all(d in (1, t) for d, t in zip(shape[::-1], to[::-1]))


def _reduced(part: Part, data: Shape, axes: tuple[int, ...], how: str) -> Part | None:
    kept = tuple(1 if i in axes else d for i, d in enumerate(data))
    if math.prod(kept) != math.prod(part.shape) or not math.prod(data):
        return None
    if kept == data:  # axes of length 1: nothing to add up
        return None
    part.reduce, part.shape, part.kept, part.work = how, data, kept, True
    return part
