"""What nodes mean element by element: an expression over their inputs, how those broadcast, and a reduction at the end.

Operators say it themselves, by the facets `expr`, `numbers`, `aligned` and `reduces` (see :mod:`mxcore.facets`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._core.graph import Graph, Node
from ..._core.infer import known
from ..._core.kernels import Spec
from ..._core.op import Op
from ...fusion import Tree
from ...fusion.dtypes import cast, compared, is_cast, rounds_once, selects
from ...halves import is_half
from ...ops.common.rules import along
from ...parameters import Int

__all__ = ["BIAS", "Part", "functions_of", "part_of", "substitute"]

Shape = tuple[int, ...]
_DTYPES = (np.dtype("float32"), np.dtype("float64"))
#: Levels of an expression that is fused; the body computes a deeper one.
_DEPTH = 100


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
            (found,) = found
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
    types : list of str
        Dtypes of the operands.
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

    __slots__ = (
        "node",
        "tree",
        "types",
        "operands",
        "scalars",
        "sources",
        "shape",
        "out",
        "reduce",
        "kept",
        "dtype",
        "work",
        "folded",
    )

    def __init__(
        self,
        node: Node,
        tree: Tree,
        operands: list[Any],
        types: list[str],
        scalars: list[Any],
        sources: list[Any],
        shape: Shape,
        dtype: Any,
    ) -> None:
        self.node, self.tree, self.operands, self.types, self.scalars, self.sources = (
            node,
            tree,
            operands,
            types,
            scalars,
            sources,
        )
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
BIAS = Op(
    "_add_bias",
    _add_bias,
    inputs="data bias",
    params={"axis": Int()},
    grad=None,
    expr="data + bias",
    alias="data->output",
    aligned=lambda p, ins, out: [None, along(ins[1], p.axis, len(out))],
)


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
    expr = node.op.facet("expr", node.params)
    return None if expr is None or _deep(expr.tree) else expr.tree


def _deep(tree: Tree) -> bool:
    """Whether a tree is deeper than those who walk it, recursively and maybe deep in the stack already, should go."""
    level = [tree]
    for _ in range(_DEPTH):
        level = [t for node in level for t in node[1:] if isinstance(t, tuple)]
        if not level:
            return False
    return True


def part_of(
    node: Node, graph: Graph, entries: Callable[[Any], Any] = lambda e: e, mixed: Collection[str] = ()
) -> Part | None:
    """The node as a part of a chain; None unless elementwise on dense float32 or float64 arrays of known shapes.

    With `mixed` dtypes, an operand of one of these may be cast to that of the node, or compared with a number; and a
    node may be of half precision where its arithmetic is one operation, which the device rounds as the array library.

    Parameters
    ----------
    graph : Graph
        With shapes, dtypes and storage types.
    entries : callable
        Entry -> the entry to read in its place.
    mixed : collection of str
        Dtypes beside those that the device's chains know.
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
    if dtype is None or not known(shape) or graph.stypes.get(out, "default") != "default":
        return None
    half = is_half(dtype)
    if dtype not in _DTYPES and not (
        half and dtype.name in mixed and (selects(tree) or op.direct is not None and rounds_once(tree))
    ):
        return None
    names: dict[str, Tree] = {}
    operands: list[Any] = []
    sources: list[Any] = []
    used = _names(tree)
    types: list[str] = []
    for i, (name, entry) in enumerate(zip(sig.inputs, node.inputs)):
        value = _constant_of(entry[0]) if graph.dtypes.get(entry) == dtype else None
        if name not in used or i in sig.like:
            sources.append((None, graph.shapes.get(entry)))
            continue
        if not known(graph.shapes.get(entry)) or graph.stypes.get(entry, "default") != "default":
            return None
        own = graph.dtypes.get(entry)
        whole = tree == ("name", name)
        if own != dtype:
            if own is None or own.name not in mixed or "reduces" in op.facets or whole and half and own == _DTYPES[1]:
                return None
            if not whole:
                found = compared(tree, name, own.name)
                if found is None:
                    return None
                tree = found
        if value is not None:
            names[name] = ("num", value)
            sources.append((value, graph.shapes[entry]))
            continue
        names[name] = ("name", f"x{len(operands)}")
        if own != dtype and whole:
            names[name] = cast(names[name], dtype.name)
        types.append(own.name)
        sources.append((len(operands), graph.shapes[entry]))
        operands.append((entries(entry), tuple(graph.shapes[entry])))
    scalars: list[Any] = []
    numbers = (
        op.facet("numbers", p, [s for _, s in sources], tuple(shape)) if used - names.keys() - op.params.keys() else {}
    )
    for name in sorted(used - names.keys()):
        value = numbers[name] if name in numbers else getattr(p, name, None)
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            return None
        names[name] = ("name", f"s{len(scalars)}")
        scalars.append((float(value), name if name in op.params and op.params[name].dynamic else None))
    tree = substitute(tree, names)
    if half and tree[0] != "name" and not is_cast(tree):
        tree = cast(tree, dtype.name)
    part = Part(node, tree, operands, types, scalars, sources, tuple(shape), dtype)
    fitted = _fitted(part) if operands and math.prod(part.shape) > 0 else None
    return None if fitted is None or fitted.reduce and half else fitted


def _constant_of(node: Node) -> float | None:
    """The value that all elements of a node's output have, if it is a constant."""
    expr = None if node.op is None else node.op.facet("expr", node.params)
    return float(expr.tree[1]) if expr is not None and expr.tree[0] == "num" else None


def _names(tree: Tree) -> set[str]:
    if tree[0] == "name":
        return {tree[1]}
    return set().union(*(_names(t) for t in tree[1:] if isinstance(t, tuple)))


def _fitted(part: Part) -> Part | None:
    """Complete a part whose operands do not broadcast as in NumPy, or that reduces; None if its shapes do not fit."""
    op, p, out = part.node.op, part.node.params, part.shape
    if "reduces" in op.facets:
        data = part.operands[0][1]
        how, axes = op.facet("reduces", p, data, out)
        if axes is not None:
            return _reduced(part, data, axes, how)
    if "aligned" in op.facets:
        shapes = op.facet("aligned", p, [shape for _, shape in part.sources], out)
        for (source, _), shape in zip(part.sources, shapes):
            if type(source) is int and shape is not None:
                _shape_operand(part, source, tuple(shape))
    return part if all(_broadcasts(s, out) for _, s in part.operands) else None


def _shape_operand(part: Part, i: int, shape: Shape) -> None:
    entry, old = part.operands[i]
    part.operands[i] = (entry, shape if math.prod(shape) == math.prod(old) else old)


def _broadcasts(shape: Shape, to: Shape) -> bool:
    return len(shape) <= len(to) and all(d in (1, t) for d, t in zip(shape[::-1], to[::-1]))


def _reduced(part: Part, data: Shape, axes: Sequence[int], how: str) -> Part | None:
    kept = tuple(1 if i in axes else d for i, d in enumerate(data))
    if math.prod(kept) != math.prod(part.shape) or not math.prod(data):
        return None
    if kept == data:  # axes of length 1: nothing to add up
        return None
    part.reduce, part.shape, part.kept, part.work = how, data, kept, True
    return part
