"""Layers that MXNet keeps apart: side by side, identity, pixel shuffles, embeddings with sparse weights."""

from __future__ import annotations

from ... import ndarray as nd
from ...base import error
from ..block import Block, HybridBlock
from ..nn import HybridSequential, Sequential

__all__ = ["Concurrent", "HybridConcurrent", "Identity", "PixelShuffle1D", "PixelShuffle2D", "PixelShuffle3D",
           "SparseEmbedding"]  # fmt: skip


class Concurrent(Sequential):
    """Blocks side by side: all get the same input, their outputs are joined along an axis.

    Parameters
    ----------
    axis : int, default -1
    prefix, params
        See `Block`.

    Examples
    --------
    >>> import mxcore as mx
    >>> both = Concurrent(axis=1)
    >>> both.add(Identity(), mx.gluon.nn.Lambda(lambda x: 2 * x))
    >>> both(mx.nd.ones((1, 2))).asnumpy().tolist()
    [[1.0, 1.0, 2.0, 2.0]]
    """

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x):
        return nd.concat(*(block(x) for block in self._children.values()), dim=self.axis)


class HybridConcurrent(HybridSequential):
    """Hybrid blocks side by side: all get the same input, their outputs are joined along an axis.

    Parameters
    ----------
    axis : int, default -1
    prefix, params
        See `HybridBlock`.
    """

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F, x):
        return F.concat(*(block(x) for block in self._children.values()), dim=self.axis)


class Identity(HybridBlock):
    """Passes its input on, e.g. as the short cut of a residual block."""

    def hybrid_forward(self, F, x):
        return x


class SparseEmbedding(Block):
    """Embedding with a row_sparse weight: a batch fetches only its rows from the trainer's store.

    Parameters
    ----------
    input_dim : int
        Number of indices.
    output_dim : int
        Size of a vector.
    dtype : str, default 'float32'
    weight_initializer : Initializer or str, optional
    **kwargs
        prefix, params.
    """

    def __init__(self, input_dim, output_dim, dtype="float32", weight_initializer=None, **kwargs):
        super().__init__(**kwargs)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": True}
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=(input_dim, output_dim), init=weight_initializer, dtype=dtype,
                grad_stype="row_sparse", stype="row_sparse",
            )  # fmt: skip

    def __repr__(self):
        k = self._kwargs
        return f"{type(self).__name__}({k['input_dim']} -> {k['output_dim']}, {k['dtype']})"

    def forward(self, x):
        return nd.Embedding(x, self.weight.row_sparse_data(x), name="fwd", **self._kwargs)


class _PixelShuffle(HybridBlock):
    """Moves blocks of channels into space, in any dimension."""

    _ndim: int

    def __init__(self, factor):
        super().__init__()
        self._factors = (int(factor),) * self._ndim if isinstance(factor, int) else tuple(map(int, factor))
        if len(self._factors) != self._ndim:
            raise error(
                ValueError,
                f"{type(self).__name__}: factor must be a number or {self._ndim} of them, got {factor}",
            )

    def __repr__(self):
        return f"{type(self).__name__}({self._factors[0] if self._ndim == 1 else self._factors})"

    def hybrid_forward(self, F, x):
        # One axis after the other, the last first: (N, C*f, H, W) -> (N, C, f, H, W) -> (N, C, H, W, f) ->
        # (N, C, H, W*f).
        n = self._ndim
        for i in reversed(range(n)):
            x = F.reshape(x, shape=(0, -4, -1, self._factors[i], *(0,) * n))
            x = F.transpose(x, axes=(0, 1, *range(3, 4 + i), 2, *range(4 + i, 3 + n)))
            x = F.reshape(x, shape=(0, 0, *(0,) * i, -3, *(0,) * (n - 1 - i)))
        return x


class PixelShuffle1D(_PixelShuffle):
    """``(N, f*C, W)`` to ``(N, C, f*W)`` (Shi et al., 2016, arXiv:1609.05158).

    Parameters
    ----------
    factor : int
    """

    _ndim = 1


class PixelShuffle2D(_PixelShuffle):
    """``(N, f1*f2*C, H, W)`` to ``(N, C, f1*H, f2*W)``.

    Parameters
    ----------
    factor : int or (int, int)

    Examples
    --------
    >>> import mxcore as mx
    >>> PixelShuffle2D((2, 3))(mx.nd.ones((1, 12, 3, 5))).shape
    (1, 2, 6, 15)
    """

    _ndim = 2


class PixelShuffle3D(_PixelShuffle):
    """``(N, f1*f2*f3*C, D, H, W)`` to ``(N, C, f1*D, f2*H, f3*W)``.

    Parameters
    ----------
    factor : int or (int, int, int)
    """

    _ndim = 3
