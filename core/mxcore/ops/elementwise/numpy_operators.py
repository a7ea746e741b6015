"""The elementwise operators of ``mx.np``: those of ``mx.nd`` under names of their own, over dtypes that may differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core.infer import merge_dtype
from ..._core.kernels import Spec
from ..._core.op import Op
from ..._core.params import Params
from ...twins import twin
from .arithmetic import ARITHMETIC
from .functions import FUNCTIONS

__all__ = ["OPERATORS", "common_dtype"]

_BOOL, _FLOAT32 = np.dtype("bool"), np.dtype("float32")
_OF = {op.name: op for op in (*ARITHMETIC, *FUNCTIONS)}


def common_dtype(*dtypes: Any) -> Any:
    """The dtype in which arrays of several dtypes are computed: the widest float, else what NumPy promotes to.

    Whole numbers never widen floats, as in MXNet: int64 and float16 give float16.
    """
    floats = [t for t in dtypes if t.kind not in "iub"]
    return np.result_type(*(floats or dtypes))


def mixed(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Dtypes of an operator of two arrays that may differ."""
    a, b = ins
    if a is not None and b is not None:
        return ins, [common_dtype(a, b)]
    t = merge_dtype(a if b is None else b, outs[0])  # what is not known yet is like the rest
    return [t, t], [t]


def truth(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Dtypes of a comparison: bool, of whatever is compared; what is not known yet is like the other."""
    known = next((t for t in ins if t is not None), None)
    return [known if t is None else t for t in ins], [_BOOL]


def _one_dtype(p: Params, *specs: Spec) -> bool:
    return bool(specs[0].dtype == specs[1].dtype)


def _never(p: Params, *specs: Spec) -> bool:
    return False


def _body_of_common(of: Op) -> Any:
    """The body of an operator of one dtype, over arrays that are cast to the common one first."""
    body: Any = of.body

    def common(k: Any, p: Params, lhs: Any, rhs: Any) -> Any:
        if lhs.dtype != rhs.dtype:
            t = common_dtype(lhs.dtype, rhs.dtype)
            lhs, rhs = lhs.astype(t, copy=False), rhs.astype(t, copy=False)
        return body(k, p, lhs, rhs)

    return common


#: Operator of ``mx.nd`` -> that of ``mx.np``.
_UNARY = {"exp": "_npi_exp"}
_BROADCAST = {"broadcast_add": "_npi_add"}
_SCALAR = {"_plus_scalar": "_npi_add_scalar"}


def _made() -> Iterator[Op]:
    for of, name in _UNARY.items():
        yield twin(name, _OF[of])
    for of, name in _BROADCAST.items():
        found = twin(name, _OF[of], when=_one_dtype, body=_body_of_common(_OF[of]))
        found.dtype(mixed)
        yield found
    for of, name in _SCALAR.items():
        yield twin(name, _OF[of])


OPERATORS = [*_made()]
