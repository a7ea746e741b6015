"""Layers that MXNet keeps apart: side by side, identity, pixel shuffles, embeddings with sparse weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import ndarray as nd
from ...base import error
from ...context import num_gpus
from ..block import Block, HybridBlock
from ..nn import BatchNorm, HybridSequential, Sequential

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ..parameter import ParameterDict

__all__ = [
    "Concurrent",
    "HybridConcurrent",
    "Identity",
    "PixelShuffle1D",
    "PixelShuffle2D",
    "PixelShuffle3D",
    "SparseEmbedding",
    "SyncBatchNorm",
]


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

    def __init__(self, axis: int = -1, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        return nd.concat(*(block(x) for block in self._children.values()), dim=self.axis)


class HybridConcurrent(HybridSequential):
    """Hybrid blocks side by side: all get the same input, their outputs are joined along an axis.

    Parameters
    ----------
    axis : int, default -1
    prefix, params
        See `HybridBlock`.
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.concat(*(block(x) for block in self._children.values()), dim=self.axis)


class Identity(HybridBlock):
    """Passes its input on, e.g. as the short cut of a residual block."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
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

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Initializer | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": True}
        with self.name_scope():
            self.weight = self.params.get(
                "weight",
                shape=(input_dim, output_dim),
                init=weight_initializer,
                dtype=dtype,
                grad_stype="row_sparse",
                stype="row_sparse",
            )

    def __repr__(self) -> str:
        k = self._kwargs
        return f"{type(self).__name__}({k['input_dim']} -> {k['output_dim']}, {k['dtype']})"

    def forward(self, x: Any) -> Any:
        return nd.Embedding(x, self.weight.row_sparse_data(x), name="fwd", **self._kwargs)


class SyncBatchNorm(BatchNorm):
    """Batch normalisation over the batches of all contexts together (Zhang et al., 2018, arXiv:1803.08904).

    Parameters
    ----------
    in_channels : int, default 0
        Number of channels; 0 takes it from the first batch.
    num_devices : int, optional
        How many contexts take part; the number of GPUs, at least 1, unless told.
    momentum : float, default 0.9
        Of the moving averages of mean and variance.
    epsilon : float, default 1e-5
        Added to the variance.
    center, scale : bool, default True
        Learn an offset `beta`, a factor `gamma`. Without, they are 0 and 1.
    use_global_stats : bool, default False
        Use the moving averages also while training.
    beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer : optional
        Initializers or their names.
    **kwargs
        prefix, params. The prefix also names the layer to the other contexts: it must be its own in the process.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.contrib.nn.SyncBatchNorm``. In training every batch must reach the layer on
    all contexts, else those that came raise an error after a while; see the operator.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = SyncBatchNorm(num_devices=2)
    >>> layer.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    >>> parts = [mx.nd.full((1, 1), v, ctx=mx.cpu(i)) for i, v in enumerate((-1, 1))]
    >>> with mx.autograd.record():
    ...     outs = [layer(x) for x in parts]
    >>> [round(float(y.asscalar()), 3) for y in outs]
    [-1.0, 1.0]
    """

    def __init__(
        self,
        in_channels: int = 0,
        num_devices: int | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Initializer | str | None = "zeros",
        gamma_initializer: Initializer | str | None = "ones",
        running_mean_initializer: Initializer | str | None = "zeros",
        running_variance_initializer: Initializer | str | None = "ones",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            1,
            momentum,
            epsilon,
            center,
            scale,
            use_global_stats,
            beta_initializer,
            gamma_initializer,
            running_mean_initializer,
            running_variance_initializer,
            in_channels,
            **kwargs,
        )
        self._kwargs: dict[str, Any] = {
            "eps": epsilon,
            "momentum": momentum,
            "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
            "ndev": max(num_gpus(), 1) if num_devices is None else num_devices,
            "key": self.prefix,
        }

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        return F.contrib.SyncBatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class _PixelShuffle(HybridBlock):
    """Moves blocks of channels into space, in any dimension."""

    _ndim: int

    def __init__(self, factor: int | tuple[int, ...]) -> None:
        super().__init__()
        self._factors = (
            (int(factor),) * self._ndim if isinstance(factor, (int, np.integer)) else tuple(map(int, factor))
        )
        if len(self._factors) != self._ndim:
            raise error(
                ValueError, f"{type(self).__name__}: factor must be a number or {self._ndim} of them, got {factor}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors[0] if self._ndim == 1 else self._factors})"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
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
