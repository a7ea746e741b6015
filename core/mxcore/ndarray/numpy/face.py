"""Arrays as the functions of ``mx.np`` are written over them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..._core import tables
from ..._core.array import Array, Storage
from ..._core.errors import error
from ..._core.op import Op
from ..._locks import writing
from ..._op_functions import mixed_faces, take_last
from ...elementwise import true_bools
from ...np_functions import Face
from ...np_functions.python_methods import give_methods
from ..checks import place
from ..ndarray import NDArray
from .multiarray import ndarray

__all__ = ["Arrays", "arrays"]


class Arrays(Face):
    """Operators that compute now."""

    value = ndarray
    eager = True
    place = "arrays"

    def from_host(self, host: np.ndarray[Any, Any], ctx: Any = None) -> ndarray:
        """An array of NumPy's on a device, copied."""
        where = place("array", ctx)
        flat = np.ascontiguousarray(true_bools(host))
        return ndarray(where.device.from_host(flat.reshape(host.shape), where.device_id), Storage(where))

    def placed(self, x: ndarray, ctx: Any = None) -> Any:
        """An array on the context that was asked for, or the current one."""
        return x.as_in_ctx(place("array", ctx))

    def call(self, op: str, *inputs: Any, out: Any = None, ctx: Any = None, **params: Any) -> Any:
        found = tables.ops.items.get(op) or tables.ops.get(op)
        for x in inputs:
            if x.__class__ is not ndarray:
                self._check(found, inputs)
                break
        p = found.plain
        if params:
            declared = found.params
            for k, v in params.items():  # functions tell all their arguments; most calls leave them as they are
                if v is not None and (k not in declared or v is not declared[k].default):
                    p = None
                    break
        if p is None:
            p = found.parse({k: v for k, v in params.items() if v is not None})
        if out is not None and (inputs or out.__class__ is not ndarray):
            return writing(out, self._into, found, inputs, p, out)
        if not inputs:
            ctx = place(op, ctx, out)
        return Op.apply(found, inputs, p, out, cls=ndarray, ctx=ctx)

    def run(self, op: str, args: Any, kwargs: dict[str, Any]) -> Any:
        found = tables.ops.items.get(op) or tables.ops.get(op)
        for x in (*args, *kwargs.values()):
            if isinstance(x, Array) and not isinstance(x, ndarray):
                raise mixed_faces(op, x)
        out = kwargs.get("out")
        if out is not None:
            return writing(out, Op.run, found, take_last(found, args, kwargs), kwargs)
        y = Op.run(found, take_last(found, args, kwargs), kwargs)
        # An operator without inputs does not know of faces.
        return y.as_np_ndarray() if y.__class__ is NDArray else y

    def _check(self, op: Op, inputs: Any) -> None:
        """Refuse inputs that are no arrays of ``mx.np``."""
        names = op.input_names
        for i, x in enumerate(inputs):
            if not isinstance(x, ndarray):
                if isinstance(x, Array):
                    raise mixed_faces(op.name, x)
                name = names[min(i, len(names) - 1)]
                raise error(
                    TypeError,
                    f"operator {op.name}: input '{name}' must be an array of mx.np (np.array makes one), got "
                    f"{type(x).__name__}",
                )

    def _into(self, op: Op, inputs: Any, p: Any, out: Any) -> Any:
        """Write into what is given as `out`: an array, several, or a tuple of one, as NumPy has it."""
        if isinstance(out, ndarray):
            return Op.apply(op, inputs, p, out)
        if isinstance(out, (tuple, list)) and all(isinstance(x, ndarray) for x in out):
            if len(out) > 1 or isinstance(out, list):
                return Op.apply(op, inputs, p, out)
            Op.apply(op, inputs, p, *out)
            return out
        raise error(TypeError, f"operator {op.name}: out must be an array of mx.np, got {type(out).__name__}")

    def with_number(self, name: str, op: str, x: Any, number: Any, out: Any = None) -> Any:
        """What an operator of an array and a number gives; `name` is the function's."""
        if not isinstance(number, numbers.Number):
            if isinstance(number, Array):
                raise mixed_faces(name, x, number)
            raise error(
                TypeError,
                f"np.{name}: an array of mx.np cannot be combined with a {type(number).__name__}; np.array makes an "
                "array of it",
            )
        return self.call(op, x, out=out, scalar=number)


#: The face of arrays.
arrays = Arrays()
give_methods(arrays)
