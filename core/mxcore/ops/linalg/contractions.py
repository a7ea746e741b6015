"""Products of arrays as ``mx.np`` has them: dot, matmul, tensordot, einsum. All are contractions.

A contraction multiplies arrays whose axes have labels, numbers: axes of one label go together, and those that the
result lacks are summed over. Each operator says which labels the axes have; body, shape rule and gradients are common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import index
from typing import Any, NamedTuple

import numpy as np

from ..._core.op import Op
from ..._core.params import Param, Params, literal
from ...parameters import Int, Shape, Str
from ...typing import Array, Call, Operators
from ..common.bodies import silent, wide
from ..common.gradients import given
from ..common.rules import axis_of, size_of
from ..elementwise.numpy_operators import common_dtype
from .einsum_notation import labels_of

__all__ = ["CONTRACTIONS", "Labels", "contract", "contraction"]


class Labels(NamedTuple):
    """The labels of the axes of each operand, and those of the result."""

    operands: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]


Shapes = tuple[tuple[int, ...], ...]
#: ``(p, shapes) -> Labels``; raises ValueError for arrays that have no such product.
Labelling = Callable[[Params, Shapes], Labels]


def _lengths(labels: Labels, shapes: Shapes) -> dict[int, int]:
    """Label -> length; axes of length 1 are repeated. Raises ValueError where lengths differ."""
    found: dict[int, int] = {}
    for at, shape in zip(labels.operands, shapes):
        for label, n in zip(at, shape):
            m = found.get(label, 1)
            if 1 != n != m != 1 or n != shape[at.index(label)]:
                other = shape[at.index(label)] if m in (1, n) else m
                raise ValueError(
                    f"in arrays of shapes {' and '.join(map(str, shapes))}, axes of lengths {other} and {n} do not fit"
                )
            found[label] = n if m == 1 else m
    return found


def _labels_besides(which: int, labels: Labels, lengths: dict[int, int], shapes: Shapes) -> set[int]:
    """The labels of all operands but one, without those of axes that are repeated: they say nothing."""
    others = [(at, shape) for k, (at, shape) in enumerate(zip(labels.operands, shapes)) if k != which]
    return {x for at, shape in others for x, n in zip(at, shape) if n == lengths[x]}


class _Operand(NamedTuple):
    """How an operand is made ready: pairs of axes of which the diagonal is taken, axes that are summed over."""

    diagonals: tuple[tuple[int, int], ...]
    summed: tuple[int, ...]


class _Pair(NamedTuple):
    """A product of two values: of matrices or, where nothing is summed, of elements."""

    i: int
    j: int
    axes: tuple[tuple[int, ...], tuple[int, ...]]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    matrices: bool
    shape: tuple[int, ...]


class _Plan(NamedTuple):
    """Operands, then products, each of two values before it; the axes of the last one in the order of the result."""

    operands: tuple[_Operand, ...]
    pairs: tuple[_Pair, ...]
    axes: tuple[int, ...]


def _readied(at: Sequence[int], lengths: dict[int, int], shape: Sequence[int], needed: set[int]) -> Any:
    """(how, labels that are left): a diagonal for labels that come twice, a sum over those that nobody else has."""
    left, sizes, diagonals = [*at], [*shape], []
    while len(left) != len(set(left)):
        i, j = next((i, j) for j in range(len(left)) for i in range(j) if left[i] == left[j])
        diagonals.append((i, j))
        left.append(left[i])
        sizes.append(sizes[i])
        for k in (j, i):
            del left[k], sizes[k]
    gone = tuple(k for k, x in enumerate(left) if x not in needed or sizes[k] == 1 != lengths[x])
    return _Operand(tuple(diagonals), gone), tuple(x for k, x in enumerate(left) if k not in gone)


@lru_cache(1024)
def _plan(labels: Labels, shapes: Shapes, optimize: Any) -> _Plan:
    lengths = _lengths(labels, shapes)
    operands, values, pairs = [], [], []
    for k, (at, shape) in enumerate(zip(labels.operands, shapes)):
        needed = {*labels.result} | _labels_besides(k, labels, lengths, shapes)
        how, left = _readied(at, lengths, shape, needed)
        operands.append(how)
        values.append(left)
    waiting = [*range(len(shapes))]
    for group in _path(labels, shapes, optimize):
        chosen = [waiting[k] for k in group]
        waiting = [v for v in waiting if v not in chosen]
        made = chosen.pop(0)
        while chosen:
            i, j = made, chosen.pop(0)
            rest = {*labels.result}.union(*(values[v] for v in (*waiting, *chosen)))
            pair, left = _pair(i, j, values[i], values[j], rest, lengths)
            pairs.append(pair)
            values.append(left)
            made = len(values) - 1
        waiting.append(made)
    last = values[waiting[0]]
    return _Plan(tuple(operands), tuple(pairs), tuple(map(last.index, (x for x in labels.result if x in last))))


def _path(labels: Labels, shapes: Shapes, optimize: Any) -> list[tuple[int, ...]]:
    """Which values are multiplied, group by group; as in `numpy.einsum_path`, the product goes to the end."""
    n = len(shapes)
    if n < 3 or not optimize:
        return [tuple(range(n))]
    if isinstance(optimize, tuple):
        left = n
        for group in optimize:
            if len(group) != len({*group}) or not all(0 <= k < left for k in group):
                raise ValueError(f"the path {optimize} does not fit {n} arrays")
            left -= len(group) - 1
        return [*optimize, tuple(range(left))]
    distinct = {x: i for i, x in enumerate(dict.fromkeys(x for at in labels.operands for x in at))}
    if len(distinct) > 52:  # more than NumPy has letters for
        return [tuple(range(n))]
    given: list[Any] = []
    for at, shape in zip(labels.operands, shapes):
        given += [np.broadcast_to(np.float32(0), shape), [distinct[x] for x in at]]
    how = "greedy" if optimize == 1 else optimize
    return list(np.einsum_path(*given, [distinct[x] for x in labels.result], optimize=how)[0][1:])


def _pair(
    i: int, j: int, a: tuple[int, ...], b: tuple[int, ...], rest: set[int], lengths: dict[int, int]
) -> tuple[_Pair, tuple[int, ...]]:
    both = [x for x in a if x in b and x in rest]
    summed = [x for x in a if x in b and x not in rest]
    own, other = [x for x in a if x not in b], [x for x in b if x not in a]
    axes = tuple(map(a.index, (*both, *own, *summed))), tuple(map(b.index, (*both, *summed, *other)))

    def sizes(*names: Sequence[int]) -> tuple[int, ...]:
        return tuple([size_of(lengths[x] for x in group) for group in names])

    if summed:
        shapes = sizes(both, own, summed), sizes(both, summed, other)
        if len(both) == 0:
            shapes = shapes[0][1:], shapes[1][1:]
    else:
        shapes = (*sizes(both, own), 1), (*sizes(both), 1, *sizes(other))
    made = (*both, *own, *other)
    return _Pair(i, j, axes, shapes, bool(summed), tuple([lengths[x] for x in made])), made


def contract(xp: Any, labels: Labels, arrays: Sequence[Any], optimize: Any = 0) -> Any:
    """The contraction of arrays of one dtype; labels of the result that no array has are left out."""
    plan = _plan(labels, tuple([tuple(x.shape) for x in arrays]), optimize)
    values = [*arrays]
    for k, how in enumerate(plan.operands):
        for i, j in how.diagonals:
            values[k] = xp.diagonal(values[k], 0, i, j)
        if how.summed:
            values[k] = values[k].sum(how.summed, dtype=values[k].dtype)
    for i, j, (a, b), (left, right), matrices, shape in plan.pairs:
        x, y = values[i].transpose(a).reshape(left), values[j].transpose(b).reshape(right)
        values[i] = values[j] = None
        values.append((xp.matmul(x, y) if matrices else x * y).reshape(shape))
    found = values[-1]
    return found.transpose(plan.axes) if plan.axes != (*range(found.ndim),) else found


def _like_one(arrays: Sequence[Any]) -> list[Any]:
    """Arrays in the dtype that products are computed in."""
    t = common_dtype(*[x.dtype for x in arrays])
    return [wide(x if x.dtype == t else x.astype(t)) for x in arrays]


def _counted(x: Any) -> Any:
    """Truth values as numbers, of which a sum is true if one is."""
    return x.astype(np.int32) if x.dtype.kind == "b" else x


def _gradient(xp: Any, labels: Labels, which: int, dy: Any, arrays: Sequence[Any]) -> Any:
    """The gradient of one operand of a contraction; `arrays` are all of them, of that one only the shape is read."""
    shape = tuple(arrays[which].shape)
    shapes = tuple([tuple(x.shape) for x in arrays])
    lengths = _lengths(labels, shapes)
    others = [k for k in range(len(arrays)) if k != which]
    own = labels.operands[which]
    distinct = [*dict.fromkeys(own)]
    full = [shape[own.index(x)] for x in distinct]
    known = {*labels.result} | _labels_besides(which, labels, lengths, shapes)
    want = tuple([x for x, n in zip(distinct, full) if x in known and n == lengths[x]])
    back = Labels((labels.result, *(labels.operands[k] for k in others)), want)
    g = contract(xp, back, _like_one([dy, *(arrays[k] for k in others)]), 1)
    g = xp.broadcast_to(g.reshape([n if x in want else 1 for x, n in zip(distinct, full)]), tuple(full))
    if len(distinct) == len(own):
        return g.copy() if want != tuple(distinct) else g
    out = xp.zeros(shape, g.dtype)
    at = [xp.arange(n).reshape([-1 if k == m else 1 for k in range(len(full))]) for m, n in enumerate(full)]
    out[tuple([at[distinct.index(x)] for x in own])] = g
    return out


def _product_shape(labelling: Labelling) -> Callable[..., Any]:
    def rule(p: Params, ins: list[Any]) -> list[Any]:
        shapes = tuple([tuple(s) for s in ins])
        labels = labelling(p, shapes)
        lengths = _lengths(labels, shapes)
        return [tuple([lengths[x] for x in labels.result])]

    return rule


def _product_dtype(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Inputs may differ; what is not known yet is like the rest."""
    known = [t for t in ins if t is not None]
    t = common_dtype(*known) if known else outs[0]
    return [t if x is None else x for x in ins], [t]


def _cost(labelling: Labelling) -> Callable[..., float]:
    def cost(p: Params, ins: list[Any], outs: list[Any]) -> float:
        shapes = tuple([tuple(s) for s in ins])
        return size_of(_lengths(labelling(p, shapes), shapes).values()) / 10

    return cost


def contraction(
    name: str,
    labelling: Labelling,
    doc: str,
    inputs: str = "a b",
    params: dict[str, Param] | None = None,
    plain: bool = False,
    output: str = "output",
) -> tuple[Op, Op]:
    """Declare a product of two arrays, and the operator of its gradients.

    Parameters
    ----------
    name : str
    labelling : callable
        ``(p, shapes) -> Labels``.
    doc : str
        Its documentation.
    inputs : str
        Two names.
    params : dict of str to Param, optional
    plain : bool
        Two matrices have the usual product.
    output : str
        The name of the product.
    """
    params = params or {}
    back_name = f"{name if name[0] == '_' else '_' + name}_back"

    @silent
    def body(k: Call, p: Params, lhs: Array, rhs: Array) -> Array:
        if plain and lhs.ndim == rhs.ndim == 2 and lhs.dtype == rhs.dtype and lhs.dtype.itemsize > 2:
            return k.xp.matmul(lhs, rhs)
        arrays = _like_one([lhs, rhs])
        return contract(k.xp, labelling(p, (lhs.shape, rhs.shape)), [*map(_counted, arrays)])

    @silent
    def back(k: Call, p: Params, dy: Array, other: Array, like: Array) -> Array:
        arrays = [other, other]
        arrays[p.which] = like
        labels = labelling(p, tuple([tuple(x.shape) for x in arrays]))
        return _gradient(k.xp, labels, p.which, dy, arrays)

    def product(F: Operators, p: Params, x: Any, other: Any, which: int) -> Any:
        """The product, with `x` in one of the places."""
        return getattr(F, name)(*((other, x) if which else (x, other)), **given(p, params))

    def gradient(F: Operators, p: Params, dy: Any, other: Any, like: Any, which: int) -> Any:
        return getattr(F, back_name)(dy, other, like, which=which, **given(p, params))

    def rule(F: Operators, p: Params, dys: Any, lhs: Any, rhs: Any, needs: Any) -> Any:
        return tuple(gradient(F, p, dys[0], (rhs, lhs)[i], (lhs, rhs)[i], i) if needs[i] else None for i in range(2))

    def back_rule(F: Operators, p: Params, dys: Any, dy_: Any, other: Any, needs: Any) -> Any:
        """A gradient is linear in both of what it is computed of, by the same two operators."""
        return (
            product(F, p, dys[0], other, p.which) if needs[0] else None,
            gradient(F, p, dy_, dys[0], other, 1 - p.which) if needs[1] else None,
            None,
        )

    a, b = inputs.split()
    forward = Op(
        name,
        body,
        inputs=inputs,
        outputs=output,
        params=params,
        recompute=False,
        # Rules ask for inputs by their names.
        grad=eval(f"lambda F, p, dys, {a}, {b}, needs: rule(F, p, dys, {a}, {b}, needs)", {"rule": rule}),
        doc=doc,
    )
    backward = Op(
        back_name,
        back,
        inputs="dy other like~",
        params={**params, "which": Int(ge=0, le=1)},
        recompute=False,
        grad=back_rule,
        doc=f"""The gradient of one operand of `{name}`.

    Parameters
    ----------
    dy : array
        Gradient of the product.
    other : array
        The other operand.
    like : array
        The operand itself; only its shape and dtype are used.
    {", ".join(["which", *params])}
        Which operand that is, 0 or 1; as in `{name}`.
    """,
    )
    forward.shape(_product_shape(labelling))
    forward.dtype(_product_dtype)
    forward.cost(_cost(labelling))
    forward.attach(flops=True)
    backward.shape(_back_shape(labelling))
    backward.dtype(lambda p, ins, outs: (ins, [ins[2]]))
    return forward, backward


def _back_shape(labelling: Labelling) -> Callable[..., Any]:
    product = _product_shape(labelling)

    def rule(p: Params, ins: list[Any]) -> list[Any]:
        dy, other, like = ins
        want = product(p, [other, like] if p.which else [like, other])[0]
        if tuple(dy) != want:
            raise ValueError(f"dy {dy} must have the shape of the product, {want}")
        return [like]

    return rule


def _range(start: int, n: int) -> tuple[int, ...]:
    return tuple(range(start, start + n))


def _dot(p: Params, shapes: Shapes) -> Labels:
    m, n = map(len, shapes)
    a, b = _range(0, m), _range(m, n)
    if not m or not n:
        return Labels((a, b), a + b)
    at = 0 if n == 1 else n - 2
    if shapes[0][-1] != shapes[1][at]:
        raise ValueError(
            f"a {shapes[0]} and b {shapes[1]} are summed over lengths that differ, {shapes[0][-1]} and {shapes[1][at]}"
        )
    return Labels((a, (*b[:at], a[-1], *b[at + 1 :])), (*a[:-1], *b[:at], *b[at + 1 :]))


def _matmul(p: Params, shapes: Shapes) -> Labels:
    (a, b), m, n = shapes, len(shapes[0]), len(shapes[1])
    if not m or not n:
        raise ValueError(f"a {a} and b {b} must have a dimension or more; numbers are multiplied by *")
    inner = (a[-1], b[-2 if n > 1 else 0])
    if inner[0] != inner[1]:
        raise ValueError(f"a {a} and b {b} are summed over lengths that differ, {inner[0]} and {inner[1]}")
    batch = max(m - 2, n - 2, 0)
    row, summed, column = batch, batch + 1, batch + 2
    before = _range(0, batch)
    left = (*before[batch - max(m - 2, 0) :], *([row] if m > 1 else []), summed)
    right = (*before[batch - max(n - 2, 0) :], summed, *([column] if n > 1 else []))
    return Labels((left, right), (*before, *([row] if m > 1 else []), *([column] if n > 1 else [])))


def _summed(shapes: Shapes, left: Sequence[int], right: Sequence[int]) -> Labels:
    """Labels of a product that is summed over some axes of both arrays."""
    m, n = map(len, shapes)
    try:
        left = [axis_of(i, m) for i in left]
        right = [axis_of(i, n) for i in right]
    except ValueError as e:
        raise ValueError(f"a {shapes[0]} and b {shapes[1]}: {e}") from None
    if len(left) != len(right) or len({*left}) != len(left) or len({*right}) != len(right):
        raise ValueError(f"axes {left} of a and {right} of b must be as many, each named once")
    for i, j in zip(left, right):
        if shapes[0][i] != shapes[1][j]:
            raise ValueError(
                f"a {shapes[0]} and b {shapes[1]} are summed over lengths that differ, "
                f"{shapes[0][i]} and {shapes[1][j]}"
            )
    a = _range(0, m)
    b = [*_range(m, n)]
    for i, j in zip(left, right):
        b[j] = a[i]
    return Labels((a, tuple(b)), tuple(x for x in (*a, *b) if x not in {a[i] for i in left}))


def _tensordot(p: Params, shapes: Shapes) -> Labels:
    return _summed(shapes, p.a_axes_summed, p.b_axes_summed)


def _tensordot_int_axes(p: Params, shapes: Shapes) -> Labels:
    m, n = map(len, shapes)
    if not 0 <= p.axes <= min(m, n):
        raise ValueError(f"axes is {p.axes}, a {shapes[0]} and b {shapes[1]} have {m} and {n} dimensions")
    return _summed(shapes, range(m - p.axes, m), range(p.axes))


def _matvec(p: Params, shapes: Shapes) -> Labels:
    (A, x), m, n = shapes, len(shapes[0]), len(shapes[1])
    if m < 2 or not n or A[-1] != x[-1]:
        raise ValueError(f"matrices A {A} and vectors x {x} do not fit")
    batch = max(m - 2, n - 1)
    before = _range(0, batch)
    return Labels(
        ((*before[batch - m + 2 :], batch, batch + 1), (*before[batch - n + 1 :], batch + 1)), (*before, batch)
    )


def _multi_dot(p: Params, shapes: Shapes) -> Labels:
    """A chain of matrices; the first and the last one may be vectors."""
    if len(shapes) < 2:
        raise ValueError(f"two arrays or more are multiplied, got {len(shapes)}")
    for i, s in enumerate(shapes):
        if len(s) != 2 and not (len(s) == 1 and i in (0, len(shapes) - 1)):
            raise ValueError(f"array {i} {s} must be a matrix; the first and the last one may be vectors")
    for i, (a, b) in enumerate(zip(shapes, shapes[1:])):
        if a[-1] != b[0]:
            raise ValueError(f"arrays {i} {a} and {i + 1} {b} are summed over lengths that differ, {a[-1]} and {b[0]}")
    at = [(i, i + 1) if len(s) == 2 else (i + 1,) if not i else (i,) for i, s in enumerate(shapes)]
    return Labels(tuple(at), tuple(x for s, x in ((shapes[0], 0), (shapes[-1], len(shapes))) if len(s) == 2))


class Optimize(Param):
    """In which order `einsum` multiplies: 0 as it is written, 1 or 'greedy', 'optimal', or a path."""

    kind = "0, 1, 'greedy', 'optimal' or a path of tuples of ints"

    def convert(self, value: Any) -> Any:
        try:
            if isinstance(value, str):
                word = value.strip("' ")
                value = word if word in ("greedy", "optimal") else literal(word)
            if isinstance(value, (tuple, list)):
                return tuple(tuple(map(index, group)) for group in value)
            return value if isinstance(value, str) else index(value)
        except (TypeError, ValueError):
            raise TypeError(f"must be {self.kind}, got {value!r}") from None


_EINSUM: dict[str, Param] = {"num_args": Int(ge=0), "subscripts": Str(""), "optimize": Optimize(0)}


def _einsum(p: Params, shapes: Shapes) -> Labels:
    return labels_of(p.subscripts, tuple(map(len, shapes)))


def _chain(name: str, labelling: Labelling, params: dict[str, Param], doc: str) -> tuple[Op, Op]:
    """Declare a product of any number of arrays, and the operator of its gradients."""

    told = [*params.keys() - {"num_args"}]

    def order(p: Params) -> Any:
        return p.optimize if "optimize" in params else "optimal"

    @silent
    def body(k: Call, p: Params, *data: Array) -> Array:
        labels = labelling(p, tuple([tuple(x.shape) for x in data]))
        found = contract(k.xp, labels, [*map(_counted, _like_one(data))], order(p))
        return found.copy() if len(data) == 1 else found

    @silent
    def back(k: Call, p: Params, dy: Array, *data: Array) -> Array:
        labels = labelling(p, tuple([tuple(x.shape) for x in data]))
        return _gradient(k.xp, labels, p.which, dy, data)

    def product(F: Operators, p: Params, data: Sequence[Any], which: int, x: Any) -> Any:
        return getattr(F, name)(*[x if k == which else y for k, y in enumerate(data)], **given(p, told))

    def gradient(F: Operators, p: Params, dy: Any, data: Sequence[Any], which: int) -> Any:
        return getattr(F, f"{name}_back")(dy, *data, which=which, num_args=len(data), **given(p, told))

    def rule(F: Operators, p: Params, dys: Any, data: Any, needs: Any) -> Any:
        return [[gradient(F, p, dys[0], data, k) if needs[k] else None for k in range(len(data))]]

    def back_rule(F: Operators, p: Params, dys: Any, dy_: Any, data: Any, needs: Any) -> Any:
        moved = [dys[0] if k == p.which else x for k, x in enumerate(data)]
        others = [gradient(F, p, dy_, moved, k) if k != p.which and needs[k + 1] else None for k in range(len(data))]
        return product(F, p, data, p.which, dys[0]) if needs[0] else None, others

    forward = Op(name, body, inputs="data*", params=params, recompute=False, grad=rule, doc=doc)
    backward = Op(
        f"{name}_back",
        back,
        inputs="dy data*",
        params={**params, "which": Int(ge=0)},
        recompute=False,
        grad=back_rule,
        doc=f"""The gradient of one operand of `{name}`.

    Parameters
    ----------
    dy : array
        Gradient of the product.
    data : arrays
        All operands; of that one only shape and dtype are used.
    num_args : int
        How many; counted for you.
    {", ".join(["which", *told])}
        Which operand that is; as in `{name}`.
    """,
    )
    forward.shape(_product_shape(labelling))
    forward.dtype(_product_dtype)
    forward.cost(_cost(labelling))
    forward.attach(flops=True)

    @backward.shape
    def _(p: Params, ins: list[Any]) -> list[Any]:
        dy, *data = ins
        if p.which >= len(data):
            raise ValueError(f"which is {p.which}, there are {len(data)} operands")
        want = forward.shape_rule(p, data)[0]
        if tuple(dy) != want:
            raise ValueError(f"dy {dy} must have the shape of the product, {want}")
        return [data[p.which]]

    backward.dtype(lambda p, ins, outs: (ins, [ins[1 + p.which]]))
    return forward, backward


_DOC = """{}

    Parameters
    ----------
    a, b : array
        {} Of any two dtypes; the result has the wider one, where floats win over whole numbers.
    """

CONTRACTIONS = [
    *contraction(
        "_np_dot",
        _dot,
        _DOC.format(
            "The product of two arrays: the last axis of `a` with the last but one, or only one, of `b`.",
            "Numbers (of no dimensions) multiply all of the other.",
        ),
        plain=True,
    ),
    *contraction(
        "_npi_matmul",
        _matmul,
        _DOC.format(
            "The product of each pair of matrices of two stacks, which are broadcast.",
            "Of one dimension or more; one of one dimension is a vector.",
        ),
        plain=True,
        output="out",
    ),
    *contraction(
        "_npi_tensordot",
        _tensordot,
        _DOC.format("The product of two arrays, summed over some axes of both.", "")
        + """a_axes_summed, b_axes_summed : tuple of int
        Axes of each, as many.
    """,
        params={"a_axes_summed": Shape(), "b_axes_summed": Shape()},
    ),
    *contraction(
        "_npi_tensordot_int_axes",
        _tensordot_int_axes,
        _DOC.format("The product of two arrays, summed over the last axes of the one and the first of the other.", "")
        + """axes : int
        Over how many.
    """,
        params={"axes": Int()},
    ),
    *contraction(
        "_matvec",
        _matvec,
        """Products of matrices and vectors, stacks of which are broadcast.

    Parameters
    ----------
    A : array (..., m, n)
    x : array (..., n)
    """,
        inputs="A x",
    ),
    *_chain(
        "_npi_einsum",
        _einsum,
        _EINSUM,
        """The sum of products that Einstein's notation says.

    Parameters
    ----------
    data : arrays
        The operands.
    num_args : int
        How many; counted for you.
    subscripts : str
        Labels of their axes, and of those of the result: ``'ij,jk->ik'``. Without the latter, labels that come once,
        in the order of the alphabet. ``...`` stands for axes that are broadcast.
    optimize : int, str or tuple
        In which order arrays are multiplied: 0 as they stand, 1 or 'greedy', 'optimal', or a path of tuples.
    """,
    ),
    *_chain(
        "_multi_dot",
        _multi_dot,
        {},
        """The product of several matrices, in the order that takes the least work.

    Parameters
    ----------
    data : arrays
        Matrices; the first and the last one may be vectors.
    num_args : int
        How many; counted for you.
    """,
    ),
]
