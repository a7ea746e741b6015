"""The class ndarray: NumPy's array over the same storage, devices and tape as NDArray."""

from __future__ import annotations

from ..._op_functions import FACES
from ...ops.common.python_operators import NUMPY_COMPARISONS, NUMPY_OPERATORS
from .. import operators
from ..ndarray import NDArray

__all__ = ["ndarray"]


class ndarray(NDArray):
    """An array of ``mx.np``: NumPy's semantics, on any device, on the tape of :mod:`mxcore.autograd`.

    Made by ``np.array`` and the other functions of ``mx.np``, and from an array of ``mx.nd`` by `as_np_ndarray`, which
    shares its memory.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.nd.array([1, 2]).as_np_ndarray() + 1
    array([2., 3.])
    """

    __slots__ = ()
    rules = NDArray

    def as_nd_ndarray(self) -> NDArray:
        """The same memory and place on the tape as an array of ``mx.nd``."""
        found: NDArray = self.of(NDArray)
        return found

    def as_np_ndarray(self) -> ndarray:
        """This array."""
        return self

    def __repr__(self) -> str:
        text = repr(self.asnumpy()).replace(", dtype=float32", "")
        return text if self._st.ctx.device_type == "cpu" else f"{text[:-1]}, ctx={self._st.ctx})"

    def __str__(self) -> str:
        return str(self.asnumpy())


ndarray.dense = ndarray
FACES.add(ndarray)
operators.install(ndarray, True, NUMPY_OPERATORS, NUMPY_COMPARISONS)
