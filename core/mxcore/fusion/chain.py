"""Chains of elementwise operators as one: what passes make, and devices compile."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core.errors import error
from ..elementwise import broadcast_shapes
from .expr import Expr, Tree
from .printing import print_with

__all__ = ["Fused", "layout"]

#: Operations of an expression tree whose value is a truth value, and those functions that give one.
_TRUTH, _TESTS = frozenset({"cmp", "and", "or", "not"}), frozenset({"isnan", "isinf"})
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _is_truth(tree: Tree) -> bool:
    return tree[0] in _TRUTH or (tree[0] == "call" and tree[1] in _TESTS)


def _typed(tree: Tree, truth: bool = False) -> Tree:
    """The tree with truth values and numbers made explicit: 1 or 0 for a truth value, ``x != 0`` for a number."""
    kind = tree[0]
    if kind in ("and", "or"):
        new: Tree = (kind, _typed(tree[1], True), _typed(tree[2], True))
    elif kind == "not":
        new = (kind, _typed(tree[1], True))
    elif kind == "cmp" and _is_truth(tree[2]) and _is_truth(tree[3]) and tree[1] in ("==", "!="):
        new = (kind, tree[1], _typed(tree[2], True), _typed(tree[3], True))
    elif kind == "cmp":
        new = (kind, tree[1], _typed(tree[2]), _typed(tree[3]))
    elif kind == "call":
        new = (kind, tree[1], *(_typed(t, tree[1] == "where" and i == 0) for i, t in enumerate(tree[2:])))
    elif kind in ("name", "num"):
        new = tree
    elif kind == "cast":
        new = (kind, tree[1], _typed(tree[2]))
    else:
        new = (kind, *map(_typed, tree[1:]))
    if _is_truth(new) == truth:
        return new
    return ("cmp", "!=", new, ("num", 0)) if truth else ("call", "where", new, ("num", 1), ("num", 0))


class Fused:
    """A chain of elementwise operators, maybe with reductions at its end, as ``Device.compile_fused`` compiles it.

    It says what to compute in a form that any device can print: expression trees, and over which dimensions each
    operand varies. It holds no sizes but in `dims`, which do not belong to the `key`: chains with equal keys share
    their code.

    Parameters
    ----------
    inputs : sequence of str
        Names of the input arrays.
    outputs : sequence of str, Expr or tuple
        Per output the name of a step or input, an expression over names, or its tree.
    dtype : str
        'float32' or 'float64', of inputs, arithmetic and outputs.
    types : mapping, optional
        Name -> dtype, of inputs, scalars and steps that have another one. A step computes in its own dtype: what it
        reads of another one is in a tree ``("cast", dtype, tree)``, or compared with such a number. Only chains for
        devices with `fused_dtypes` have some.
    scalars : sequence of str
        Names of numbers that are given at run time.
    steps : sequence of (str, Expr or str or tuple)
        Named values, each over inputs, scalars and earlier steps.
    reduce : sequence of (None, 'sum', 'mean', 'max' or 'min')
        Per output: how its value is reduced over the dimensions that the output lacks; none unless told.
    pattern : sequence of str, optional
        For each input, then each output, the letters of the dimensions it varies over, e.g. ``("ab", "b", "ab")``:
        adding a vector to the rows of a matrix. Without it inputs and outputs broadcast as their shapes say when the
        code is bound.
    dims : sequence of int, optional
        The length of each dimension of `pattern`.

    Attributes
    ----------
    steps : tuple of (str, tuple)
        All computations, in order; trees as in :mod:`mxcore.fusion.expr`, truth values only where one is asked for.
    outputs : tuple of str
        Names of steps or inputs.

    Examples
    --------
    >>> chain = Fused(["x", "b"], ["relu(x + b)"], pattern=("ab", "b", "ab"), dims=(64, 10))
    >>> chain.steps
    (('y0', ('call', 'relu', ('+', ('name', 'x'), ('name', 'b')))),)
    >>> chain.inplace
    ((0, 0),)
    """

    __slots__ = ("inputs", "scalars", "steps", "outputs", "reduce", "dtype", "pattern", "dims", "types", "key")

    def __init__(
        self,
        inputs: Iterable[str],
        outputs: Iterable[Any],
        dtype: str = "float32",
        *,
        scalars: Iterable[str] = (),
        steps: Iterable[tuple[str, Any]] = (),
        reduce: Iterable[str | None] = (),
        pattern: Iterable[str] | None = None,
        dims: Iterable[int] | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        self.inputs, self.scalars, self.dtype = tuple(inputs), tuple(scalars), dtype
        known = {*self.inputs, *self.scalars}
        done: list[tuple[str, Tree]] = []

        def add(name: str, what: Any) -> None:
            tree = what if isinstance(what, tuple) else (what if isinstance(what, Expr) else Expr(what, known)).tree
            done.append((name, _typed(tree)))
            known.add(name)

        for name, what in steps:
            add(name, what)
        names = []
        for i, what in enumerate(outputs):
            if not isinstance(what, str) or what not in known or what in self.scalars:
                add(f"y{i}", what)
                what = f"y{i}"
            names.append(what)
        self.steps, self.outputs = tuple(done), tuple(names)
        self.reduce = tuple(reduce) or (None,) * len(names)
        self.pattern = None if pattern is None else tuple(pattern)
        self.dims = None if dims is None else tuple(dims)
        self.types = {name: t for name, t in (types or {}).items() if t != dtype}
        #: Equal for chains that are compiled to one code.
        self.key: tuple[Any, ...] = (
            self.inputs,
            self.scalars,
            self.steps,
            self.outputs,
            self.reduce,
            dtype,
            self.pattern,
            len(self.dims or ()),
            tuple(sorted(self.types.items())),
        )

    def type_of(self, name: str) -> str:
        """The dtype of an input, a scalar or a step."""
        return self.types.get(name, self.dtype)

    @property
    def inplace(self) -> tuple[tuple[int, int], ...]:
        """Pairs (input, output) that may share a buffer: both vary over all dimensions, and nothing is reduced.

        An input may share with one output, an output with one input. No other input may overlap an output.
        """
        if self.pattern is None:
            return ()
        full, n = max(self.pattern, key=len), len(self.inputs)
        return tuple(
            (i, j)
            for i in range(n)
            for j, how in enumerate(self.reduce)
            if how is None
            and self.pattern[i] == full == self.pattern[n + j]
            and self.type_of(self.inputs[i]) == self.type_of(self.outputs[j])
        )

    def with_layout(
        self, shape: Sequence[int], inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]
    ) -> Fused:
        """The same chain with `pattern` and `dims` for operands of these shapes; see :func:`layout`."""
        pattern, dims = layout(shape, [*inputs, *outputs])
        return Fused(
            self.inputs,
            self.outputs,
            self.dtype,
            scalars=self.scalars,
            steps=self.steps,
            reduce=self.reduce,
            pattern=pattern,
            dims=dims,
            types=self.types,
        )

    def for_operands(self, outs: Sequence[Any], inputs: Sequence[Any], scalars: Sequence[float] = ()) -> Fused | None:
        """The chain with `pattern` and `dims` for these arrays; None if it runs over no elements.

        Raises
        ------
        MXNetError
            (also ValueError) if there are more or fewer operands than it takes.
        """
        if (len(outs), len(inputs), len(scalars)) != (len(self.outputs), len(self.inputs), len(self.scalars)):
            raise error(
                ValueError,
                f"fused chain {self!r} takes {len(self.outputs)} outputs, {len(self.inputs)} inputs and "
                f"{len(self.scalars)} scalars, got {len(outs)}, {len(inputs)} and {len(scalars)}",
            )
        if self.dims is not None:
            return self
        shape = functools.reduce(broadcast_shapes, [a.shape for a in (*outs, *inputs)])
        if not math.prod(shape):
            return None
        return self.with_layout(shape, [a.shape for a in inputs], [a.shape for a in outs])

    def fill_empty(self, outs: Sequence[Any]) -> None:
        """Write what comes of no elements: only sums, and extremes without any, have a value then."""
        for o, how in zip(outs, self.reduce):
            if o.size:
                o[...] = {"sum": 0, "max": -math.inf, "min": math.inf}.get(how or "", math.nan)

    def __repr__(self) -> str:
        over = "" if self.pattern is None else f" over {self.pattern}"
        return f"<Fused {'; '.join(f'{n} = {_text(t)}' for n, t in self.steps)}{over}>"


def layout(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Over which dimensions each operand of a broadcasting computation varies, with as few dimensions as possible.

    Parameters
    ----------
    shape : sequence of int
        What the computation runs over.
    operands : sequence of shapes
        Each broadcasts to `shape` (for a reduced output: with its reduced axes of length 1).

    Returns
    -------
    pattern : tuple of str
        Per operand the letters of its dimensions; neighbours that no operand tells apart are one dimension.
    dims : tuple of int
        Lengths of the dimensions.

    Examples
    --------
    >>> layout((8, 3, 5, 5), [(8, 3, 5, 5), (3, 1, 1)])
    (('abc', 'b'), (8, 3, 25))
    """
    n = len(shape)
    full = [(1,) * (n - len(s)) + tuple(s) for s in operands]
    dims: list[int] = []
    masks: list[tuple[bool, ...]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        mask = tuple(s[axis] == size for s in full)
        if masks and masks[-1] == mask:
            dims[-1] *= size
        else:
            dims.append(size)
            masks.append(mask)
    if not dims:
        dims, masks = [1], [(True,) * len(full)]
    return tuple("".join(c for c, mask in zip(_LETTERS, masks) if mask[i]) for i in range(len(full))), tuple(dims)


def _text(tree: Tree) -> str:
    return print_with(tree, str, lambda fn, args: f"{fn}({', '.join(args)})", cast="{0}({1})".format)
