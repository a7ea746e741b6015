"""Operators of ``mx.np`` by the names in MXNet's modules ``_internal``: ``add_scalar`` is ``_npi_add_scalar``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .._core import tables
from .._core.errors import suggest

if TYPE_CHECKING:
    from . import Face

__all__ = ["internal"]

_PREFIX = "_npi_"
#: What is another operator by a further name there.
_OTHERS = {
    "Custom": "Custom",
    "boolean_mask": "_contrib_boolean_mask",
    "cast": "Cast",
    "copyto": "_copyto",
    "cvimdecode": "_cvimdecode",
    "cvimresize": "_cvimresize",
    "gather_nd": "gather_nd",
    "inv": "_linalg_inverse",
    "random_randint": "_random_randint",
    "rnn_param_concat": "_rnn_param_concat",
    "scatter_set_nd": "_scatter_set_nd",
    "shuffle": "_shuffle",
    "slice": "slice",
    "slice_assign": "_slice_assign",
    "slice_assign_scalar": "_slice_assign_scalar",
}


def internal(where: str, F: Face) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module that shows them over a face.

    Parameters
    ----------
    where : str
        Name of the module.
    F : Face
    """

    def dir_() -> list[str]:
        return sorted({*_OTHERS, *(n[len(_PREFIX) :] for n in tables.ops.names() if n.startswith(_PREFIX))})

    def getattr_(name: str) -> Any:
        op = tables.ops.find(_OTHERS.get(name, _PREFIX + name))
        if op is None or name.startswith("__"):
            raise AttributeError(f"module {where!r} has no attribute {name!r}{suggest(name, dir_())}")
        return partial(_run, F, op.name)

    return getattr_, dir_


def _run(F: Face, op: str, /, *args: Any, **kwargs: Any) -> Any:
    return F.run(op, args, kwargs)
