"""Normalisation layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._core.params import as_dtype
from ...ops.common.bodies import is_half
from ..block import HybridBlock

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ..parameter import Parameter, ParameterDict

__all__ = ["BatchNorm", "BatchNormReLU", "GroupNorm", "InstanceNorm", "LayerNorm"]


class _Norm(HybridBlock):
    """Layers with a scale `gamma` and an offset `beta`, both optional, of one size."""

    gamma: Parameter
    beta: Parameter
    _axis: int
    #: What the operator takes, shown by `repr`.
    _kwargs: dict[str, Any]

    def __init__(
        self,
        size: int,
        center: bool,
        scale: bool,
        beta_initializer: Initializer | str | None,
        gamma_initializer: Initializer | str | None,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        with self.name_scope():
            for name, learnt, init in (("gamma", scale, gamma_initializer), ("beta", center, beta_initializer)):
                setattr(
                    self,
                    name,
                    self.params.get(
                        name,
                        grad_req="write" if learnt else "null",
                        shape=(size,),
                        init=init,
                        allow_deferred_init=True,
                        differentiable=learnt,
                    ),
                )

    def __repr__(self) -> str:
        content = ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())
        return f"{type(self).__name__}({content}, in_channels={self.gamma.shape[0]})"

    def infer_shape(self, x: Any, *args: Any) -> None:
        for p in self._reg_params.values():
            p.shape = (x.shape[self._axis],)


class BatchNorm(_Norm):
    """Batch normalisation (Ioffe and Szegedy, 2015, arXiv:1502.03167).

    Parameters
    ----------
    axis : int, default 1
        The channel axis.
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
    in_channels : int, default 0
        Number of channels; 0 takes it from the first batch.
    **kwargs
        prefix, params.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.nn.BatchNorm``; its moving averages move in the backward pass. The
    parameters stay float32 when the block is cast to float16 or bfloat16.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.BatchNorm()
    >>> layer.initialize()
    >>> layer(mx.nd.ones((2, 3, 4, 4))).shape, layer.gamma.shape
    ((2, 3, 4, 4), (3,))
    """

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Initializer | str | None = "zeros",
        gamma_initializer: Initializer | str | None = "ones",
        running_mean_initializer: Initializer | str | None = "zeros",
        running_variance_initializer: Initializer | str | None = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(in_channels, center, scale, beta_initializer, gamma_initializer, **kwargs)
        self._axis = axis
        self._kwargs = {
            "axis": axis,
            "eps": epsilon,
            "momentum": momentum,
            "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
        }
        averages = (("mean", running_mean_initializer), ("var", running_variance_initializer))
        for name, init in averages:
            setattr(
                self,
                "running_" + name,
                self.params.get(
                    "running_" + name,
                    grad_req="null",
                    shape=(in_channels,),
                    init=init,
                    allow_deferred_init=True,
                    differentiable=False,
                ),
            )

    def __repr__(self) -> str:
        content = ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())
        return f"{type(self).__name__}({content}, in_channels={self.gamma.shape[0] or None})"

    def cast(self, dtype: Any) -> None:
        super().cast("float32" if is_half(as_dtype(dtype)) else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        return F.BatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class BatchNormReLU(BatchNorm):
    """Batch normalisation followed by ReLU; parameters as for `BatchNorm`.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.BatchNormReLU()
    >>> layer.initialize()
    >>> layer(-mx.nd.ones((1, 1))).asnumpy().tolist()
    [[0.0]]
    """

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        return F.contrib.BatchNormWithReLU(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class InstanceNorm(_Norm):
    """Instance normalisation: of every image and channel by itself (Ulyanov et al., 2016, arXiv:1607.08022).

    Parameters
    ----------
    axis : int, default 1
        The channel axis.
    epsilon : float, default 1e-5
        Added to the variance.
    center : bool, default True
    scale : bool, default False
        Learn an offset `beta`, a factor `gamma`.
    beta_initializer, gamma_initializer : Initializer or str
    in_channels : int, default 0
        Number of channels; 0 takes it from the first batch.
    **kwargs
        prefix, params.
    """

    def __init__(
        self,
        axis: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = False,
        beta_initializer: Initializer | str | None = "zeros",
        gamma_initializer: Initializer | str | None = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(in_channels, center, scale, beta_initializer, gamma_initializer, **kwargs)
        self._axis = axis
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._kwargs["eps"])
        x = x.swapaxes(1, self._axis)
        return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._kwargs["eps"]).swapaxes(1, self._axis)


class LayerNorm(_Norm):
    """Layer normalisation along one axis (Ba et al., 2016, arXiv:1607.06450).

    Parameters
    ----------
    axis : int, default -1
        The axis to normalise.
    epsilon : float, default 1e-5
        Added to the variance.
    center, scale : bool, default True
        Learn an offset `beta`, a factor `gamma`.
    beta_initializer, gamma_initializer : Initializer or str
    in_channels : int, default 0
        Size of the axis; 0 takes it from the first batch.
    prefix, params
        See `HybridBlock`.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.LayerNorm()
    >>> layer.initialize()
    >>> layer(mx.nd.array([[1, 1, 1]])).asnumpy().tolist()
    [[0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Initializer | str | None = "zeros",
        gamma_initializer: Initializer | str | None = "ones",
        in_channels: int = 0,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        super().__init__(in_channels, center, scale, beta_initializer, gamma_initializer, prefix, params)
        self._axis = axis
        self._epsilon = epsilon
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        return F.LayerNorm(x, gamma, beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_Norm):
    """Group normalisation: of groups of channels of every sample (Wu and He, 2018, arXiv:1803.08494).

    Parameters
    ----------
    num_groups : int, default 1
        Number of groups; it must divide the number of channels (axis 1).
    epsilon : float, default 1e-5
        Added to the variance.
    center, scale : bool, default True
        Learn an offset `beta`, a factor `gamma`, one a group as in MXNet 1.9.1.
    beta_initializer, gamma_initializer : Initializer or str
    prefix, params
        See `HybridBlock`.
    """

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Initializer | str | None = "zeros",
        gamma_initializer: Initializer | str | None = "ones",
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        super().__init__(num_groups, center, scale, beta_initializer, gamma_initializer, prefix, params)
        self._num_groups = num_groups
        self._epsilon = epsilon
        self._kwargs = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._kwargs.items())})"

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        return F.GroupNorm(x, gamma, beta, num_groups=self._num_groups, eps=self._epsilon)
