"""The reductions of ``mx.np``: those of ``mx.nd`` with scalars for results, dtypes to add up in, and truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.op import Op
from ..._core.params import Params
from ...parameters import Bool, DType, Float, Int, Shape
from ...twins import twin
from ...typing import Call, Operators
from ..common.bodies import is_half, silent, wide
from ..common.rules import axes_of, axis_of
from .operators import REDUCTIONS, extreme_grad, prod_grad, repeated, some

__all__ = ["ARGS", "OPERATORS", "TRUTH", "kept_shape", "numpy_axes", "widened"]

_BOOL, _INT64, _F32 = (np.dtype(t) for t in ("bool", "int64", "float32"))
_OF = {op.name: op for op in REDUCTIONS}


def numpy_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction as NumPy has them: none for (), and 0 of an array without axes."""
    return () if axis == () else axes_of(axis, ndim)


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape after a reduction; () where nothing is left."""
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


def widened(t: Any) -> Any:
    """The dtype to compute in for results of a dtype: float32 for half precision."""
    return _F32 if is_half(t) else t


def _shape(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    if ins[0] is None:
        return ins, outs
    return ins, [kept_shape(ins[0], numpy_axes(p.axis, len(ins[0])), p.keepdims)]


def _chosen_shape(p: Params, ins: list[Any]) -> list[Any]:
    axes = numpy_axes(p.axis, len(ins[0]))
    if p.initial is None:
        some(ins[0], axes)
    return [kept_shape(ins[0], axes, p.keepdims)]


def _result(of: Callable[[Any], Any]) -> Callable[..., Any]:
    """The dtype rule of a reduction whose results have the dtype that is asked for, else ``of(dtype)``."""

    def rule(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        asked, t = getattr(p, "dtype", None), ins[0]
        if t is None:
            return [outs[0] if asked is None else None], [outs[0] if asked is None else asked]
        return ins, [asked or of(t)]

    return rule


def _counted(t: Any) -> Any:
    """Truth values are added up as numbers; all others keep their dtype."""
    return _INT64 if t == _BOOL else t


def _averaged(t: Any) -> Any:
    return t if t.kind not in "iub" else _F32


def _plain(p: Params, *specs: Any) -> bool:
    """Whether it means what the operator of ``mx.nd`` means, whose kernels compute it."""
    return getattr(p, "dtype", None) is None and p.initial is None and p.axis != () and specs[0].dtype != _BOOL


def _reduced_axes(p: Params, data: Any, out: Any) -> tuple[int, ...]:
    return numpy_axes(p.axis, len(data))


def _mean(xp: Any, x: Any, axes: Any, t: Any) -> Any:
    # Whole numbers are exact in float64; of nothing NumPy would warn.
    wide = np.float64 if t.kind in "iub" or x.dtype.kind in "iub" else widened(t)
    return xp.mean(x, axes, dtype=wide) if x.size else x.sum(axes, wide) / 0.0


_SUM: dict[str, Any] = {"axis": Shape(None), "dtype": DType(None), "keepdims": Bool(False), "initial": Float(None)}
_EXTREME: dict[str, Any] = {"axis": Shape(None), "keepdims": Bool(False), "initial": Float(None)}
_DTYPE_DOC = """
    dtype : dtype, optional
        Of the result, and to compute in; {}"""
_DOC = """{}

    Parameters
    ----------
    a : array
    axis : int or tuple of int, optional
        All axes unless told; () stands for none.{}
    keepdims : bool
        Keep reduced axes with length 1.
    initial : float, optional
        {}
    """
_KEPT = "unless told that of `a`, int64 of truth values. Half precision is computed in float32."


def _linear(mean: bool) -> Any:
    def grad(F: Operators, p: Params, dy: Any, like_a: Any) -> Any:
        g = dy if p.dtype is None else F._cast_like(dy, like_a)
        return g if p.axis == () else repeated(F, p, g, like_a, mean)

    return grad


def _nansum_grad(F: Operators, p: Params, dy: Any, a: Any) -> Any:
    return _linear(False)(F, p, dy, a) * (a == a)


def _prod_grad(F: Operators, p: Params, dy: Any, a: Any) -> Any:
    if p.dtype is not None:
        dy = F._cast_like(dy, a)
    if p.initial is not None:
        dy = dy * p.initial
    return dy if p.axis == () else prod_grad(F, p, dy, a)


def _extreme_grad(F: Operators, p: Params, dy: Any, a: Any, y: Any) -> Any:
    return dy * (a == y) if p.axis == () else extreme_grad(F, p, dy, a, y)


#: Operator of ``mx.nd`` -> (that of ``mx.np``, function over xp, data, axes and the dtype to compute in, what joins it
#: with `initial`, gradient, parameters, dtype of the result, documentation: what it is, its dtype, `initial`)
_TABLE: dict[str, tuple[Any, ...]] = {
    "sum": (
        "_np_sum",
        lambda xp, x, axes, t: x.sum(axes, t),
        "add",
        _linear(False),
        _SUM,
        _counted,
        ("Sum over axes.", _KEPT, "Added to the sum."),
    ),
    "mean": (
        "_npi_mean",
        _mean,
        "",
        _linear(True),
        _SUM,
        _averaged,
        ("Mean over axes.", "float32 of whole numbers unless told.", "Refused: a mean begins with nothing."),
    ),
    "prod": (
        "_np_prod",
        lambda xp, x, axes, t: xp.prod(x, axes, dtype=t),
        "multiply",
        _prod_grad,
        _SUM,
        _counted,
        ("Product over axes.", _KEPT, "A further factor."),
    ),
    "nansum": (
        "_npi_nansum",
        lambda xp, x, axes, t: xp.nansum(wide(x), axes, dtype=t),
        "add",
        _nansum_grad,
        _SUM,
        _counted,
        ("Sum over axes, NaNs counted as 0.", _KEPT, "Added to the sum."),
    ),
    "max": (
        "_np_max",
        lambda xp, x, axes, t: xp.max(x, axes),
        "maximum",
        _extreme_grad,
        _EXTREME,
        lambda t: t,
        ("Maximum over axes; NaN if one is.", "", "The least that it may be."),
    ),
    "min": (
        "_np_min",
        lambda xp, x, axes, t: xp.min(x, axes),
        "minimum",
        _extreme_grad,
        _EXTREME,
        lambda t: t,
        ("Minimum over axes; NaN if one is.", "", "The most that it may be."),
    ),
}


_ALIASES = {"_np_prod": ["_np_product"], "_np_max": ["_np_amax"], "_np_min": ["_np_amin"], "_np_any": ["_np_sometrue"]}


def _started(k: Call, y: Any, p: Params, join: str, t: Any) -> Any:
    """A result joined with what the reduction began with."""
    if not join:
        raise ValueError("initial is not for means; leave it out")
    first = k.xp.asarray(int(p.initial) if t.kind in "iub" else p.initial, dtype=widened(t))
    return getattr(k.xp, join)(y, first)


def _reduction(of: str, name: str, fn: Any, join: str, grad: Any, params: Any, dtype: Any, doc: Any) -> Op:
    chooses = of in ("max", "min")

    @silent
    def body(k: Call, p: Params, a: Any) -> Any:
        t = getattr(p, "dtype", None) or dtype(a.dtype)
        if p.axis is None is p.initial and not p.keepdims and a.size:  # what most calls ask for
            return fn(k.xp, a, None, widened(t))
        axes, shape = numpy_axes(p.axis, a.ndim), a.shape
        if not axes:  # then over one more, so that each element is alone
            a, last = a.reshape(*shape, 1), (a.ndim,)
        if chooses and not a.size:  # the greatest of nothing is what it begins with
            y = k.xp.full(kept_shape(shape, axes, False), p.initial or 0, t)
        else:
            y = fn(k.xp, a, (None if len(axes) == a.ndim else axes) if axes else last, widened(t))
            if p.initial is not None:
                y = _started(k, y, p, join, t)
        return y.reshape(kept_shape(shape, axes, True)) if p.keepdims else y

    facets: dict[str, Any] = {"identity": lambda p: "elements" if p.initial is None and of != "nansum" else False}
    if of in ("sum", "mean", "max", "min"):
        facets |= {
            "expr": lambda p: "a" if p.initial is None and getattr(p, "dtype", None) is None else None,
            "reduces": (of, _reduced_axes),
        }
    what, of_dtype, initial = doc
    asked = _DTYPE_DOC.format(of_dtype) if "dtype" in params else ""
    made = twin(
        name,
        _OF[of],
        when=_plain,
        aliases=_ALIASES.get(name, ()),
        body=body,
        inputs="a",
        params=params,
        grad=grad,
        doc=_DOC.format(what, asked, initial),
        **facets,
    )
    made.shape(_chosen_shape if chooses else _shape)
    made.dtype(_result(dtype))
    return made


OPERATORS = [_reduction(of, *row) for of, row in _TABLE.items()]


def _truth(name: str, fn: str, what: str) -> Op:
    def body(k: Call, p: Params, data: Any) -> Any:
        axes = numpy_axes(p.axis, data.ndim)
        y = getattr(k.xp, fn)(data, None if len(axes) == data.ndim else axes) if axes else data != 0
        return y.reshape(kept_shape(data.shape, axes, True)) if p.keepdims else y

    made = Op(
        name,
        body,
        inputs="data",
        params={"axis": Shape(None), "keepdims": Bool(False)},
        aliases=_ALIASES.get(name, ()),
        grad=None,
        doc=f"""Whether {what} over axes; anything but zero is true.

    Parameters
    ----------
    data : array
    axis : int or tuple of int, optional
        All axes unless told; () stands for none.
    keepdims : bool
        Keep reduced axes with length 1.
    """,
    )
    made.shape(_shape)
    made.dtype(lambda p, ins, outs: (ins, [_BOOL]))
    return made


TRUTH = [_truth("_np_all", "all", "all elements are true"), _truth("_np_any", "any", "any element is true")]


def _arg_axes(p: Params, ndim: int) -> tuple[int, ...]:
    return numpy_axes(None if p.axis is None else (p.axis,), ndim)


def _arg_shape(p: Params, ins: list[Any]) -> list[Any]:
    axes = _arg_axes(p, len(ins[0]))
    some(ins[0], axes)
    return [kept_shape(ins[0], axes, p.keepdims)]


def _arg(name: str, which: str) -> Op:
    def body(k: Call, p: Params, data: Any) -> Any:
        whole = p.axis is None or not data.ndim
        i = getattr(k.xp, name)(data, None if whole else axis_of(p.axis, data.ndim))
        return i.reshape(kept_shape(data.shape, _arg_axes(p, data.ndim), True)) if p.keepdims else i

    made = Op(
        f"_npi_{name}",
        body,
        inputs="data",
        params={"axis": Int(None), "keepdims": Bool(False)},
        grad=None,
        doc=f"""Place of the {which} along an axis, as an int64; the first of equal ones, or of the NaNs.

    Parameters
    ----------
    data : array
    axis : int, optional
        The place in the flattened array unless told.
    keepdims : bool
        Keep the axis with length 1.
    """,
    )
    made.shape(_arg_shape)
    made.dtype(lambda p, ins, outs: (ins, [_INT64]))
    return made


ARGS = [_arg("argmax", "maximum"), _arg("argmin", "minimum")]
