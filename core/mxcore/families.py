"""Families of operators as tables: unary, elementwise binary, broadcasting binary, array with scalar; and what devices print of them."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ._core.expr import Expr, Tree
from ._core.infer import merge_dtype, show
from ._core.op import MISSING, Op
from ._core.params import Bool, Float, Params

__all__ = ["Fused", "binary", "broadcast", "broadcast_rule", "broadcast_shapes", "declarations", "layout", "number_dtype", "print_with",
           "scalar", "unary", "with_number", "wrapped"]

Fn = str | Callable[..., Any]
_INT64, _FLOAT64 = np.dtype("int64"), np.dtype("float64")


def _doc(text: str, name: str, lines: Sequence[str]) -> str:
    return "\n".join([text or f"Apply {name} to each element.", "", "Parameters", "----------", *lines])


def _named(fn: Fn) -> tuple[Callable[..., Any], str | None]:
    """A function over (xp, *arrays), and the name of the array function if it is no more than that."""
    if isinstance(fn, str):
        name, _, order = fn.partition(":")
        if order == "swap":
            return (lambda xp, a, b: getattr(xp, name)(b, a)), fn
        return (lambda xp, *a: getattr(xp, name)(*a)), fn
    return fn, getattr(fn, "direct", None)


def unary(name: str, fn: Fn, *, grad: Any = MISSING, expr: str | Callable[[Params], str | None] | None = None, aliases: Iterable[str] = (), doc: str = "",
          samples: Sequence[Any] = (), view: bool = False, **facets: Any) -> Op:
    """Declare an elementwise operator of one input `data`.

    Parameters
    ----------
    name : str
    fn : str or callable
        ``(xp, x) -> array``, or the name of a function of the array namespace.
    grad : callable or None
        Gradient rule, e.g. ``lambda F, dy, y: dy * (1 - y * y)``; None: zero.
    expr : str or callable
        The meaning over the name ``x``, for fusion.
    aliases : iterable of str
        Further names.
    doc : str
        Documentation in front of that of the inputs.
    samples : sequence of Sample
        What the conformance kit runs.
    view : bool
        It returns its input's memory.
    **facets
        Further options of :func:`op`.
    """
    f, direct = _named(fn)
    op = Op(name, lambda k, p, data: f(k.xp, data), inputs="data", grad=grad, **_meaning(expr, {"x": "data"}), aliases=aliases, samples=samples,
            direct=direct, alias="data->output", view=view, **facets,
            doc=_doc(doc, name, ["data : array", "    Any shape."]))
    op.module = getattr(grad, "__module__", None) or getattr(fn, "__module__", None)
    return op


def binary(name: str, fn: Fn, *, grad: Any = MISSING, expr: str | Callable[[Params], str | None] | None = None, aliases: Iterable[str] = (), doc: str = "",
           samples: Sequence[Any] = (), **facets: Any) -> Op:
    """Declare an elementwise operator of two inputs of one shape, `lhs` and `rhs`.

    Parameters
    ----------
    name : str
    fn : str or callable
        ``(xp, a, b) -> array``, or the name of a function of the array namespace.
    grad : callable or None
        Gradient rule, e.g. ``lambda F, dy, lhs, rhs: (dy * rhs, dy * lhs)``; None: zero.
    expr : str or callable
        The meaning over ``a`` and ``b``, for fusion.
    aliases : iterable of str
        Further names.
    doc : str
        Documentation in front of that of the inputs.
    samples : sequence of Sample
        What the conformance kit runs.
    **facets
        Further options of :func:`op`.
    """
    f, direct = _named(fn)
    return Op(name, lambda k, p, lhs, rhs: f(k.xp, lhs, rhs), inputs="lhs rhs", grad=grad, aliases=aliases, samples=samples,
              **_meaning(expr, {"a": "lhs", "b": "rhs"}), direct=direct, alias="lhs->output", **facets,
              doc=_doc(doc, name, ["lhs, rhs : array", "    Of one shape and dtype."]))


def broadcast(name: str, fn: Fn, *, grad: Any = MISSING, expr: str | Callable[[Params], str | None] | None = None, aliases: Iterable[str] = (), doc: str = "",
              samples: Sequence[Any] = (), **facets: Any) -> Op:
    """Declare a broadcasting operator of two inputs, `lhs` and `rhs`.

    Parameters
    ----------
    name : str
    fn : str or callable
        ``(xp, a, b) -> array``, or the name of a function of the array namespace.
    grad : callable or None
        Gradient rule, over `lhs` and `rhs`, whose gradients have their shapes; None: zero.
    expr : str or callable
        The meaning over ``a`` and ``b``, for fusion.
    aliases : iterable of str
        Further names.
    doc : str
        Documentation in front of that of the inputs.
    samples : sequence of Sample
        What the conformance kit runs.
    **facets
        Further options of :func:`op`.
    """
    f, direct = _named(fn)
    op = Op(name, lambda k, p, lhs, rhs: f(k.xp, lhs, rhs), inputs="lhs rhs", grad=grad, aliases=aliases, samples=samples,
            **_meaning(expr, {"a": "lhs", "b": "rhs"}), direct=direct, alias="lhs->output", **facets,
            doc=_doc(doc, name, ["lhs, rhs : array", "    Shapes that broadcast, one dtype."]))
    op.shape(broadcast_rule)
    return op


def broadcast_rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Shapes of a broadcasting operator; an unknown input is filled from the output where nothing else can fit."""
    a, b = ins
    if a is not None and b is not None:
        return ins, [broadcast_shapes(a, b)]
    return ins, outs


def scalar(name: str, fn: Fn, *, grad: Any = MISSING, expr: str | Callable[[Params], str | None] | None = None, aliases: Iterable[str] = (), doc: str = "",
           samples: Sequence[Any] = (), **facets: Any) -> Op:
    """Declare an operator of an array and a number.

    The number is cast to the array's dtype first, so an int32 array times 2.5 is a multiplication by 2; with ``is_int=False`` an
    array of whole numbers becomes float64 instead. Truth values count as int64.

    Parameters
    ----------
    name : str
    fn : str or callable
        ``(xp, x, s) -> array``, or the name of a function of the array namespace.
    grad : callable or None
        Gradient rule, e.g. ``lambda F, p, dy: dy * p.scalar``; None: zero.
    expr : str or callable
        The meaning over ``x`` and ``s``, for fusion.
    aliases : iterable of str
        Further names.
    doc : str
        Documentation in front of that of the inputs.
    samples : sequence of Sample
        What the conformance kit runs.
    **facets
        Further options of :func:`op`.
    """
    f, direct = _named(fn)

    def body(k: Any, p: Params, data: Any) -> Any:
        return f(k.xp, *with_number(p, data))

    op = Op(name, body, inputs="data", params={"scalar": Float(1.0, dynamic=True), "is_int": Bool(True)}, grad=grad,
              aliases=aliases, samples=samples, direct=direct, alias="data->output", **facets,
              **_meaning(expr, {"x": "data", "s": "scalar"}),
              doc=_doc(doc, name, ["data : array", "    Any shape.", "scalar : float", "    Cast to the dtype of `data`.",
                                   "is_int : bool", "    False makes whole numbers float64."]))
    op.dtype(number_dtype)
    return op


def number_dtype(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Dtypes of an operator of an array and a number: alike, but for whole numbers where `is_int` is false, and for bools."""
    t = ins[0]
    if t is None or t.kind not in "iub":
        t = merge_dtype(t, outs[0])
        return [t], [t]
    return ins, [_FLOAT64 if not p.is_int else _INT64 if t.kind == "b" else t]  # type: ignore[attr-defined]


def with_number(p: Params, data: Any) -> tuple[Any, Any]:
    """The array and its number, both as :func:`number_dtype` says."""
    s: float = p.scalar  # type: ignore[attr-defined]
    if data.dtype.kind not in "iub":
        return data, s
    to = number_dtype(p, [data.dtype], [None])[1][0]
    return data.astype(to), s if to == _FLOAT64 else wrapped(s, to)


def wrapped(value: float, dtype: Any) -> Any:
    """A number as an integer dtype holds it: cut towards zero, and wrapped around as C does."""
    with np.errstate(invalid="ignore"):  # NaN, infinity
        return (np.int64(value) if isinstance(value, int) and -2**63 <= value < 2**63 else np.float64(value).astype(np.int64)).astype(dtype)


def _meaning(expr: Any, names: dict[str, str]) -> dict[str, Any]:
    """The facet `expr` with whole-word names exchanged, if there is one."""
    def renamed(text: str | None) -> str | None:
        return None if text is None else re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), text)

    return {} if expr is None else {"expr": (lambda p: renamed(expr(p))) if callable(expr) else renamed(expr)}


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
    else:
        new = (kind, *map(_typed, tree[1:]))
    if _is_truth(new) == truth:
        return new
    return ("cmp", "!=", new, ("num", 0)) if truth else ("call", "where", new, ("num", 1), ("num", 0))


class Fused:
    """A chain of elementwise operators as one, maybe with reductions at its end: what ``Device.compile_fused`` compiles.

    It says what to compute in a form that any device can print: expression trees, and over which dimensions each
    operand varies. It holds no sizes but in `dims`, which do not belong to the `key`: chains with equal keys share their code.

    Parameters
    ----------
    inputs : sequence of str
        Names of the input arrays.
    outputs : sequence of str, Expr or tuple
        Per output the name of a step or input, an expression over names, or its tree.
    dtype : str
        'float32' or 'float64', of inputs, arithmetic and outputs.
    scalars : sequence of str
        Names of numbers that are given at run time.
    steps : sequence of (str, Expr or str or tuple)
        Named values, each over inputs, scalars and earlier steps.
    reduce : sequence of (None, 'sum', 'mean', 'max' or 'min')
        Per output: how its value is reduced over the dimensions that the output lacks; none unless told.
    pattern : sequence of str, optional
        For each input, then each output, the letters of the dimensions it varies over, e.g. ``("ab", "b", "ab")``: adding a
        vector to the rows of a matrix. Without it inputs and outputs broadcast as their shapes say when the code is bound.
    dims : sequence of int, optional
        The length of each dimension of `pattern`.

    Attributes
    ----------
    steps : tuple of (str, tuple)
        All computations, in order; trees as in :mod:`mxcore._core.expr`, truth values only where one is asked for.
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

    __slots__ = ("inputs", "scalars", "steps", "outputs", "reduce", "dtype", "pattern", "dims", "key")

    def __init__(self, inputs: Iterable[str], outputs: Iterable[Any], dtype: str = "float32", *, scalars: Iterable[str] = (),
                 steps: Iterable[tuple[str, Any]] = (), reduce: Iterable[str | None] = (), pattern: Iterable[str] | None = None,
                 dims: Iterable[int] | None = None) -> None:
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
        #: Equal for chains that are compiled to one code.
        self.key: tuple[Any, ...] = (self.inputs, self.scalars, self.steps, self.outputs, self.reduce, dtype, self.pattern,
                                     len(self.dims or ()))

    @property
    def inplace(self) -> tuple[tuple[int, int], ...]:
        """Pairs (input, output) that may share a buffer: both vary over all dimensions, and nothing is reduced.

        An input may share with one output, an output with one input. No other input may overlap an output.
        """
        if self.pattern is None:
            return ()
        full, n = max(self.pattern, key=len), len(self.inputs)
        return tuple((i, j) for i in range(n) for j, how in enumerate(self.reduce)
                     if how is None and self.pattern[i] == full == self.pattern[n + j])

    def with_layout(self, shape: Sequence[int], inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> Fused:
        """The same chain with `pattern` and `dims` for operands of these shapes; see :func:`layout`."""
        pattern, dims = layout(shape, [*inputs, *outputs])
        return Fused(self.inputs, self.outputs, self.dtype, scalars=self.scalars, steps=self.steps, reduce=self.reduce,
                     pattern=pattern, dims=dims)

    def __repr__(self) -> str:
        return f"<Fused {'; '.join(f'{n} = {_text(t)}' for n, t in self.steps)}{'' if self.pattern is None else f' over {self.pattern}'}>"


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
    return print_with(tree, str, lambda fn, args: f"{fn}({', '.join(args)})")


def declarations(*modules: ModuleType) -> list[Op]:
    """All operators declared in the given modules, also those in module-level lists, tuples and dicts.

    Parameters
    ----------
    *modules : module
    """
    found: dict[int, Op] = {}

    def take(v: Any, depth: int = 0) -> None:
        if isinstance(v, Op):
            found[id(v)] = v
        elif isinstance(v, (list, tuple, dict)) and depth < 3:
            for x in v.values() if isinstance(v, dict) else v:
                take(x, depth + 1)

    for m in modules:
        for key, v in list(vars(m).items()):
            if not key.startswith("__"):
                take(v)
    return list(found.values())


def broadcast_shapes(a: Any, b: Any) -> Any:
    """NumPy's broadcast of two shapes `a` and `b` with unknown dimensions; raises ValueError if they do not fit."""
    if a is None or b is None:
        return None
    if a == b:
        return a
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    out = []
    for x, y in zip(a, b):
        if x == y or y == 1:
            out.append(x)
        elif x == 1:
            out.append(y)
        elif -1 in (x, y):
            out.append(max(x, y))  # the known one: 1 was ruled out above
        else:
            raise ValueError(f"{show(a)} and {show(b)} cannot be broadcast together")
    return tuple(out)


def print_with(tree: Tree, name: Callable[[str], str], call: Callable[[str, list[str]], str],
               number: Callable[[float], str] = repr, words: Mapping[str, str] | None = None) -> str:
    """Print a tree with a language's names, calls, numbers and words for and/or/not.

    Parameters
    ----------
    tree : tuple
        Of an :class:`Expr`, or a step of a :class:`Fused`.
    name : callable
        A name -> its text.
    call : callable
        A function of the expression language and the texts of its arguments -> the text of the call.
    number : callable
        A number -> its text.
    words : mapping
        The language's ``'and'``, ``'or'`` and ``'not'``; Python's unless told.
    """
    w = words or {"and": "and", "or": "or", "not": "not "}

    def go(t: Tree) -> str:
        kind = t[0]
        if kind == "name":
            return name(t[1])
        if kind == "num":
            return number(t[1])
        if kind == "neg":
            return f"(-{go(t[1])})"
        if kind == "not":
            return f"({w['not']}{go(t[1])})"
        if kind in ("+", "-", "*", "/"):
            return f"({go(t[1])} {kind} {go(t[2])})"
        if kind == "cmp":
            return f"({go(t[2])} {t[1]} {go(t[3])})"
        if kind in ("and", "or"):
            return f"({go(t[1])} {w[kind]} {go(t[2])})"
        return call(t[1], [go(x) for x in t[2:]])

    return go(tree)
