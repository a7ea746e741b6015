"""Functions that join, split, repeat and pad arrays, and put elements in or leave them out."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._core.errors import error
from .arguments import only_arrays
from .options import refuse

__all__ = [
    "append",
    "array_split",
    "column_stack",
    "concatenate",
    "delete",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "insert",
    "pad",
    "repeat",
    "row_stack",
    "split",
    "stack",
    "tile",
    "trim_zeros",
    "vsplit",
    "vstack",
]


def _arrays(F: Any, name: str, given: Any) -> list[Any]:
    """The arrays to join: a sequence, or an array for its rows."""
    found = list(given) if not F.is_value(given) or F.eager else [given]
    if not found:
        raise error(ValueError, f"np.{name} needs one array or more")
    for i, x in enumerate(found):
        if not F.is_value(x) and isinstance(x, (numbers.Number, np.ndarray, list)):
            kind = type(x).__name__
            raise error(
                TypeError, f"np.{name}: item {i} is of type {kind}, no array of mx.np; np.array makes one of it"
            )
    return found


def _join(F: Any, op: str, name: str, arrays: Any, out: Any = None, **params: Any) -> Any:
    found = _arrays(F, name, arrays)
    return F.call(op, *found, num_args=len(found), out=out, **params)


def concatenate(F: Any, seq: Any, axis: Any = 0, out: Any = None) -> Any:
    """Join arrays along an existing axis.

    Parameters
    ----------
    seq : sequence of ndarray
        Alike but in the joined axis; their dtypes may differ.
    axis : int, optional
        Along which; None flattens the arrays first.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also ValueError) for other shapes, and for no array.

    Examples
    --------
    >>> from mxcore import np
    >>> np.concatenate([np.ones(2), np.zeros(1)])
    array([1., 1., 0.])
    """
    # None is a value of the parameter here: its text stands for it.
    return _join(F, "_npi_concatenate", "concatenate", seq, out, axis="None" if axis is None else axis)


def append(F: Any, arr: Any, values: Any, axis: Any = None) -> Any:
    """Join two arrays.

    Parameters
    ----------
    arr, values : ndarray
    axis : int, optional
        Along which; flattened unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.append(np.ones(2), np.zeros(1))
    array([1., 1., 0.])
    """
    if not F.is_value(values):
        values = F.array(values, dtype=arr.dtype, ctx=arr.ctx)
    return concatenate(F, (arr, values), axis)


def stack(F: Any, arrays: Any, axis: int = 0, out: Any = None) -> Any:
    """Join arrays along a new axis.

    Parameters
    ----------
    arrays : sequence of ndarray
        Of one shape; their dtypes may differ.
    axis : int, optional
        Where the new axis goes.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.stack([np.ones(2), np.zeros(2)])
    array([[1., 1.],
           [0., 0.]])
    """
    return _join(F, "_npi_stack", "stack", arrays, out, axis=axis)


def vstack(F: Any, arrays: Any, out: Any = None) -> Any:
    """Join arrays row by row.

    Parameters
    ----------
    arrays : sequence of ndarray
        Vectors are rows.
    out : ndarray, optional
        Where to write.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.vstack([np.ones(2), np.zeros(2)])
    array([[1., 1.],
           [0., 0.]])
    """
    return _join(F, "_npi_vstack", "vstack", arrays, out)


def row_stack(F: Any, arrays: Any) -> Any:
    """Same as `vstack`: join arrays row by row.

    Parameters
    ----------
    arrays : sequence of ndarray
        Vectors are rows.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.row_stack([np.ones(2), np.zeros(2)]).shape
    (2, 2)
    """
    return _join(F, "_npi_vstack", "row_stack", arrays)


def hstack(F: Any, arrays: Any) -> Any:
    """Join arrays along their second axis, vectors along their only one.

    Parameters
    ----------
    arrays : sequence of ndarray

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.hstack([np.ones(2), np.zeros(1)])
    array([1., 1., 0.])
    """
    return _join(F, "_npi_hstack", "hstack", arrays)


def dstack(F: Any, arrays: Any) -> Any:
    """Join arrays along their third axis.

    Parameters
    ----------
    arrays : sequence of ndarray
        A vector is a row, a matrix has depth 1.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.dstack([np.ones(2), np.zeros(2)]).shape
    (1, 2, 2)
    """
    return _join(F, "_npi_dstack", "dstack", arrays)


def column_stack(F: Any, tup: Any) -> Any:
    """Join arrays column by column.

    Parameters
    ----------
    tup : sequence of ndarray
        Vectors are columns.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.column_stack([np.ones(2), np.zeros(2)])
    array([[1., 0.],
           [1., 0.]])
    """
    return _join(F, "_npi_column_stack", "column_stack", tup)


def _split(F: Any, name: str, op: str, ary: Any, where: Any, axis: int, equal: bool = True) -> Any:
    """The parts of an array, as a list."""
    if not isinstance(where, numbers.Integral):
        cuts = [int(i.__index__() if hasattr(i, "__index__") else i) for i in where]
        if F.eager:  # they are bounds of slices
            n = ary.shape[axis]
            cuts = [min(max(i + n if i < 0 else i, 0), n) for i in cuts]
            if sorted(cuts) != cuts:
                before = (slice(None),) * (axis % ary.ndim)
                return [F.copy(ary[before + (slice(b, e),)]) for b, e in zip([0, *cuts], [*cuts, n])]
        return _listed(F.call(op, ary, indices=(0, *cuts), axis=axis))
    n = int(where)
    if n <= 0:
        raise error(ValueError, f"np.{name}: the number of sections must be above 0, got {n}")
    if F.eager:
        length = ary.shape[axis]
        if equal and length % n:
            raise error(ValueError, f"np.{name}: axis {axis} of length {length} cannot be split into {n} equal parts")
    return _listed(F.call(op, ary, indices=(), axis=axis, sections=n))


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _checked_axis(F: Any, name: str, ary: Any, axis: int) -> None:
    if F.eager and not (F.is_value(ary) and -ary.ndim <= axis < ary.ndim):
        if not F.is_value(ary):
            raise error(TypeError, f"np.{name} takes an array of mx.np, got {type(ary).__name__}")
        raise error(ValueError, f"np.{name}: axis {axis} is out of range for an array of shape {ary.shape}")


def split(F: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Split an array along an axis.

    Parameters
    ----------
    ary : ndarray
    indices_or_sections : int or sequence of int
        Into how many equal parts, or where each part but the first begins.
    axis : int, optional

    Returns
    -------
    list of ndarray

    Raises
    ------
    MXNetError
        (also ValueError) if the parts cannot be equal.

    Examples
    --------
    >>> from mxcore import np
    >>> np.split(np.arange(4), 2)
    [array([0., 1.]), array([2., 3.])]
    >>> np.split(np.arange(4), [1])
    [array([0.]), array([1., 2., 3.])]
    """
    _checked_axis(F, "split", ary, axis)
    return _split(F, "split", "_split_v2", ary, indices_or_sections, axis)


def array_split(F: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Split an array along an axis into parts as equal as can be.

    Parameters
    ----------
    ary : ndarray
    indices_or_sections : int or sequence of int
        Into how many parts, or where each part but the first begins.
    axis : int, optional

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.array_split(np.arange(3), 2)
    [array([0., 1.]), array([2.])]
    """
    _checked_axis(F, "array_split", ary, axis)
    return _split(F, "array_split", "_split_v2", ary, indices_or_sections, axis, equal=False)


def hsplit(F: Any, ary: Any, indices_or_sections: Any) -> Any:
    """Split an array along its second axis, a vector along its only one.

    Parameters
    ----------
    ary : ndarray
    indices_or_sections : int or sequence of int
        Into how many equal parts, or where each part but the first begins.

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> [x.shape for x in np.hsplit(np.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    axis = 0 if F.eager and ary.ndim == 1 else 1
    _checked_axis(F, "hsplit", ary, axis)
    return _split(F, "hsplit", "_npi_hsplit", ary, indices_or_sections, axis)


def vsplit(F: Any, ary: Any, indices_or_sections: Any) -> Any:
    """Split an array of two or more dimensions along its first axis.

    Parameters
    ----------
    ary : ndarray
    indices_or_sections : int or sequence of int
        Into how many equal parts, or where each part but the first begins.

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> [x.shape for x in np.vsplit(np.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    _checked_axis(F, "vsplit", ary, 1)
    return _split(F, "vsplit", "_split_v2", ary, indices_or_sections, 0)


def dsplit(F: Any, ary: Any, indices_or_sections: Any) -> Any:
    """Split an array of three or more dimensions along its third axis.

    Parameters
    ----------
    ary : ndarray
    indices_or_sections : int or sequence of int
        Into how many equal parts, or where each part but the first begins.

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> [x.shape for x in np.dsplit(np.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    _checked_axis(F, "dsplit", ary, 2)
    return _split(F, "dsplit", "_npi_dsplit", ary, indices_or_sections, 2)


def repeat(F: Any, a: Any, repeats: Any, axis: Any = None) -> Any:
    """Repeat each element, one after the other.

    Parameters
    ----------
    a : ndarray
    repeats : int or sequence of int
        How often; or how often for each place along the axis.
    axis : int, optional
        Along which; of the flattened array unless told.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.repeat(np.array([1, 2]), 2)
    array([1., 1., 2., 2.])
    >>> np.repeat(np.array([1, 2]), [1, 2])
    array([1., 2., 2.])
    """
    if isinstance(repeats, numbers.Integral):
        return F.call("repeat", a, repeats=int(repeats), axis=axis)
    only_arrays(F, "repeat with a number for each place", a, repeats)
    host = repeats.asnumpy() if F.is_value(repeats) else np.asarray(repeats)
    if axis is None:
        a, axis = F.reshape(a, -1), 0
    try:
        places = np.repeat(np.arange(a.shape[axis]), host.astype(np.int64))
    except (ValueError, IndexError) as e:
        raise error(ValueError, f"np.repeat of an array of shape {a.shape} along axis {axis}: {e}") from None
    return F.take(a, F.from_host(places, a.ctx), axis)


def tile(F: Any, A: Any, reps: Any) -> Any:
    """Repeat the whole array.

    Parameters
    ----------
    A : ndarray or number
    reps : int or sequence of int
        How often along each axis, counted from the last; more items than axes add axes before the first.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.tile(np.array([1, 2]), (2, 2))
    array([[1., 2., 1., 2.],
           [1., 2., 1., 2.]])
    """
    if F.is_value(reps) and F.eager:
        reps = reps.asnumpy().reshape(-1)
    try:
        found = tuple(int(r) for r in reps) if hasattr(reps, "__len__") else (int(reps.__index__()),)
    except (TypeError, ValueError, AttributeError):
        raise error(TypeError, f"np.tile: reps must be a whole number or several, got {reps!r}") from None
    return F.call("tile", A if F.is_value(A) else F.array(A), reps=found)


def _pad_width(F: Any, x: Any, width: Any) -> tuple[tuple[int, int], ...]:
    """(before, after) for each axis, from what NumPy takes for all of them."""
    if width is None:
        raise error(TypeError, "np.pad needs pad_width, such as 1 or ((1, 1), (0, 2))")
    if F.is_value(width) and F.eager:
        width = width.asnumpy()
    try:
        found = np.asarray(width).astype(
            np.int64, casting="same_kind" if np.asarray(width).dtype.kind != "f" else "unsafe"
        )
        if F.eager:
            found = np.broadcast_to(found, (x.ndim, 2))
        elif found.ndim != 2:
            raise ValueError("a symbol needs a pair for each axis")
    except (ValueError, TypeError) as e:
        raise error(ValueError, f"np.pad: pad_width {width!r} is no pair for each axis: {e}") from None
    if found.size and found.min() < 0:
        raise error(ValueError, f"np.pad: pad_width {width!r} must not be negative")
    return tuple((int(b), int(a)) for b, a in found)


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "maximum", "minimum", "wrap")


def pad(F: Any, x: Any, pad_width: Any = None, mode: Any = "constant", **kwargs: Any) -> Any:
    """Add margins to an array.

    Parameters
    ----------
    x : ndarray
    pad_width : int, (before, after), or a pair for each axis
    mode : {'constant', 'edge', 'reflect', 'symmetric', 'maximum', 'minimum', 'wrap'}, optional
        Fill the margins with a number, the nearest element, the mirrored array without or with its edge, the greatest
        or least element along the axis, or the other end.
    **kwargs
        `constant_values`, of mode 'constant': a number, or, as `pad_width`, pairs of them.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also NotImplementedError) for modes and options that are not there.

    Examples
    --------
    >>> from mxcore import np
    >>> np.pad(np.array([1, 2]), (1, 2))
    array([0., 1., 2., 0., 0.])
    >>> np.pad(np.array([1, 2]), 1, "edge")
    array([1., 1., 2., 2.])
    """
    if not isinstance(mode, str) or mode not in _PAD_MODES:
        if callable(mode) or mode in ("linear_ramp", "mean", "median", "empty"):
            raise refuse("pad", "mode", mode, "constant")
        raise error(ValueError, f"np.pad: mode must be one of {', '.join(_PAD_MODES)}, got {mode!r}")
    width = _pad_width(F, x, pad_width)
    values: Any = kwargs.pop("constant_values", 0) if mode == "constant" else 0
    if kwargs.pop("reflect_type", "even") != "even" and mode in ("reflect", "symmetric"):
        raise refuse("pad", "reflect_type", "odd", "even")
    if kwargs.pop("stat_length", None) is not None:
        raise refuse("pad", "stat_length", "…", None)
    if kwargs:
        raise error(TypeError, f"np.pad: mode '{mode}' has no argument '{next(iter(kwargs))}'")
    if isinstance(values, numbers.Real):
        return F.call("_npi_pad", x, pad_width=width, mode=mode, constant_value=float(values))
    host = np.broadcast_to(values.asnumpy() if F.is_value(values) else np.asarray(values), (len(width), 2))
    for i, pair in enumerate(width):  # each side has a number of its own
        for side in (0, 1):
            one = tuple(tuple(n if (j, s) == (i, side) else 0 for s, n in enumerate(w)) for j, w in enumerate(width))
            if pair[side]:
                x = F.call("_npi_pad", x, pad_width=one, constant_value=float(host[i, side]))
    return x


def _slice_parts(s: slice) -> dict[str, Any]:
    """The parameters that tell the places of a slice; one without bounds still is one."""
    return {"start": s.start, "stop": s.stop, "step": 1 if s.step is None else s.step}


def _places(F: Any, arr: Any, obj: Any) -> Any:
    """Places as an array of integers; a mask stands for those where it is true."""
    if F.is_value(obj):
        if not F.eager:
            return obj
        if obj.dtype != np.bool_:
            return obj if np.dtype(obj.dtype).kind in "iu" else obj.astype(np.int64)
        obj = obj.asnumpy()
    host = np.asarray(obj)
    if not host.size:
        host = host.astype(np.int64)
    if host.dtype.kind == "b":
        host = np.flatnonzero(host)
    if host.dtype.kind not in "iu":
        raise error(TypeError, f"places must be whole numbers, a slice or a mask, got {obj!r}")
    return F.from_host(host, arr.ctx)


def delete(F: Any, arr: Any, obj: Any, axis: Any = None) -> Any:
    """An array without some places along an axis.

    Parameters
    ----------
    arr : ndarray
    obj : int, slice, sequence of int or ndarray
        The places; a mask stands for those where it is true.
    axis : int, optional
        The flattened array unless told.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also IndexError) for places out of range.

    Examples
    --------
    >>> from mxcore import np
    >>> np.delete(np.arange(4), [0, 2])
    array([1., 3.])
    """
    if isinstance(obj, slice):
        return F.call("_npi_delete", arr, axis=axis, **_slice_parts(obj))
    if isinstance(obj, numbers.Integral) and not isinstance(obj, bool):
        return F.call("_npi_delete", arr, axis=axis, int_ind=int(obj))
    return F.call("_npi_delete", arr, _places(F, arr, obj), axis=axis)


def insert(F: Any, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """An array with elements put in along an axis.

    Parameters
    ----------
    arr : ndarray
    obj : int, slice, sequence of int or ndarray
        Before which places of `arr`.
    values : number or ndarray
        What is put in, broadcast to the places, in the dtype of `arr`.
    axis : int, optional
        The flattened array unless told.

    Returns
    -------
    ndarray

    Raises
    ------
    MXNetError
        (also IndexError) for places out of range.

    Examples
    --------
    >>> from mxcore import np
    >>> np.insert(np.arange(3), 1, 9)
    array([0., 9., 1., 2.])
    """
    if isinstance(values, numbers.Number):
        what: list[Any] = []
        told: dict[str, Any] = {"val": float(values), "axis": axis}  # type: ignore[arg-type]
    else:
        what, told = [values if F.is_value(values) else F.array(values, dtype=arr.dtype, ctx=arr.ctx)], {"axis": axis}
    if isinstance(obj, slice):
        return F.call("_npi_insert_slice", arr, *what, **told, **_slice_parts(obj))
    if isinstance(obj, numbers.Integral) and not isinstance(obj, bool):
        return F.call("_npi_insert_scalar", arr, *what, **told, int_ind=int(obj))
    return F.call("_npi_insert_tensor", arr, *what, _places(F, arr, obj), **told)


def trim_zeros(F: Any, filt: Any, trim: str = "fb") -> Any:
    """A vector without the zeros at its ends.

    Parameters
    ----------
    filt : ndarray
        A vector.
    trim : {'fb', 'f', 'b'}, optional
        At both ends, the front, or the back.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from mxcore import np
    >>> np.trim_zeros(np.array([0, 1, 2, 0]))
    array([1., 2.])
    """
    only_arrays(F, "trim_zeros", filt)
    if filt.ndim != 1:
        raise error(ValueError, f"np.trim_zeros takes a vector, got an array of shape {filt.shape}")
    where = np.flatnonzero(filt.asnumpy())
    if not where.size:
        return filt[:0]
    first = int(where[0]) if "f" in trim.lower() else 0
    last = int(where[-1]) + 1 if "b" in trim.lower() else filt.size
    return filt[first:last]
