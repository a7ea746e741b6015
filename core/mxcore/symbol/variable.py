"""Free variables."""

from __future__ import annotations

from typing import Any

from .. import attribute
from .._core.errors import error
from .._core.graph import variable
from .._core.params import as_dtype
from .._interrupts import let_through
from ..base import plain
from ..parameters import Shape, dtype_name
from .attrs import is_wrapped, kept
from .inference import TYPE_CODES
from .symbol import Symbol

__all__ = ["Variable", "var"]

_CODES = {name: code for code, name in TYPE_CODES.items()}
#: MXNet's numbers of storage types in attributes.
_STORAGE_CODES = {"default": 0, "row_sparse": 1, "csr": 2}


def Variable(
    name: str,
    attr: dict[str, str] | None = None,
    shape: Any = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: Any = None,
    init: Any = None,
    stype: str | None = None,
    profiler_scope: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """A symbol to be bound to an array.

    Parameters
    ----------
    name : str
    attr : dict of str, optional
    shape : tuple of int, optional
        0 is an unknown dimension.
    lr_mult, wd_mult : float, optional
        Factors that optimizers apply to this parameter.
    dtype : dtype, optional
    init : Initializer or str, optional
        How modules initialise it.
    stype : str, optional
        Storage type: 'default', 'row_sparse' or 'csr'.
    profiler_scope : str, optional
        Where profilers count its memory.
    **kwargs : str
        Further attributes, named ``__like_this__``.

    Raises
    ------
    MXNetError
        If the name is no string, an attribute is none, or is not named ``__like_this__``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.sym.Variable("w", shape=(3, 0), lr_mult=2).attr("lr_mult")
    '2'
    """
    if not isinstance(name, str):
        raise error(TypeError, f"Variable: name must be a str, got {type(name).__name__}")
    if shape is not None:
        try:
            Shape(none=True).convert(shape)
        except TypeError as e:
            raise error(TypeError, f"Variable: parameter 'shape' {e}") from None
    attrs = kept(attribute.current().get(attr))
    for key, value in (
        ("shape", plain(shape)),
        ("lr_mult", lr_mult),
        ("wd_mult", wd_mult),
        ("profiler_scope", profiler_scope),
    ):
        if value is not None:
            attrs[f"__{key}__"] = str(value)
    if stype is not None:
        if stype not in _STORAGE_CODES:
            raise error(ValueError, f"Variable: stype must be one of {', '.join(_STORAGE_CODES)}, got {stype!r}")
        attrs["__storage_type__"] = str(_STORAGE_CODES[stype])
    if dtype is not None:
        found = dtype_name(as_dtype(dtype))
        attrs["__dtype__"] = str(_CODES.get(found, found))  # of some MXNet knows no number
    if init is not None:
        attrs["__init__"] = init if isinstance(init, str) else _text(name, init)
    for k, v in kwargs.items():
        if not is_wrapped(k):
            raise error(ValueError, f"Variable: attribute {k!r} must begin and end with two underscores")
        attrs[k] = str(v)
    return Symbol([(variable(name, **attrs), 0)])


def _text(name: str, init: Any) -> str:
    """An initializer as an attribute holds it."""
    if isinstance(init, type) or not callable(getattr(init, "dumps", None)):
        raise error(
            TypeError,
            f"Variable: init of {name!r} must be an initializer such as mx.init.One(), not one of several arrays "
            f"(Load, Mixed), or the text of one, got {init!r}",
        )
    try:
        found: str = init.dumps()
    except (TypeError, ValueError) as e:
        let_through(e)
        raise error(
            TypeError, f"Variable: init of {name!r}, a {type(init).__name__}, has an argument that is no text: {e}"
        ) from None
    return found


var = Variable
