"""Pooling layers of one to three dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._signatures import with_defaults
from ..block import HybridBlock
from .convolution import dimensions, spread

if TYPE_CHECKING:
    from ..parameter import ParameterDict

__all__ = [
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
]


class _Pooling(HybridBlock):
    """All pooling layers. Toolkits derive their own from it: parameters and attributes are MXNet's."""

    _ndim: int | None = None

    def __init__(
        self,
        pool_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] | None,
        padding: int | tuple[int, ...],
        ceil_mode: bool,
        global_pool: bool,
        pool_type: str,
        layout: str,
        count_include_pad: bool | None = None,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        ndim, kind = dimensions(self, layout), type(self).__name__
        kernel = spread(pool_size, ndim, f"{kind}: pool_size")
        self._kwargs = {
            "kernel": kernel,
            "stride": kernel if strides is None else spread(strides, ndim, f"{kind}: strides"),
            "pad": spread(padding, ndim, f"{kind}: padding"),
            "global_pool": global_pool,
            "pool_type": pool_type,
            "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid",
        }
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def __repr__(self) -> str:
        k = self._kwargs
        return (
            f"{type(self).__name__}(size={k['kernel']}, stride={k['stride']}, padding={k['pad']}, "
            f"ceil_mode={k['pooling_convention'] == 'full'}, global_pool={k['global_pool']}, "
            f"pool_type={k['pool_type']}, layout={k['layout']})"
        )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Pooling(x, name="fwd", **self._kwargs)


class _MaxPooling(_Pooling):
    """Maximum pooling, by the arguments of its layers."""

    def __init__(
        self,
        pool_size: int | tuple[int, ...] = 2,
        strides: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool1D(_MaxPooling):
    """Maximum pooling in 1 dimension.

    Parameters
    ----------
    pool_size : int or tuple of 1 int, default 2
    strides : int or tuple of 1 int, optional
        By default the pool size.
    padding : int or tuple of 1 int, default 0
    ceil_mode : bool, default False
        Round the output size up.
    layout : {'NCW', 'NWC'}
        Order of the axes.
    **kwargs
        prefix, params.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.nn.MaxPool1D``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.nn.MaxPool1D()(mx.nd.ones((1, 1, 4))).shape
    (1, 1, 2)
    """

    _ndim = 1


@with_defaults(pool_size=(2, 2), layout="NCHW")
class MaxPool2D(_MaxPooling):
    """Maximum pooling in 2 dimensions; parameters as for `MaxPool1D`."""

    _ndim = 2


class MaxPool3D(_Pooling):
    """Maximum pooling in 3 dimensions; parameters as for `MaxPool1D`."""

    _ndim = 3

    def __init__(
        self,
        pool_size: int | tuple[int, ...] = (2, 2, 2),
        strides: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class AvgPool1D(_Pooling):
    """Average pooling in 1 dimension.

    Parameters
    ----------
    pool_size : int or tuple of 1 int, default 2
    strides : int or tuple of 1 int, optional
        By default the pool size.
    padding : int or tuple of 1 int, default 0
    ceil_mode : bool, default False
        Round the output size up.
    layout : {'NCW', 'NWC'}
        Order of the axes.
    count_include_pad : bool, default True
        Count padding zeros in the average.
    **kwargs
        prefix, params.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.nn.AvgPool1D``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.nn.AvgPool1D()(mx.nd.ones((1, 1, 4))).shape
    (1, 1, 2)
    """

    _ndim = 1

    def __init__(
        self,
        pool_size: int | tuple[int, ...] = 2,
        strides: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class _AvgPooling(_Pooling):
    """Average pooling, by the arguments of its layers of two and three dimensions."""

    def __init__(
        self,
        pool_size: int | tuple[int, ...] = (2, 2),
        strides: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode: bool = False,
        layout: str = "NCHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool2D(_AvgPooling):
    """Average pooling in 2 dimensions; parameters as for `AvgPool1D`."""

    _ndim = 2


@with_defaults(pool_size=(2, 2, 2), layout="NCDHW")
class AvgPool3D(_AvgPooling):
    """Average pooling in 3 dimensions; parameters as for `AvgPool1D`."""

    _ndim = 3


class _GlobalPooling(_Pooling):
    """Pooling of all there is, by the arguments of its layers."""

    _pool_type = "avg"

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__(1, None, 0, True, True, self._pool_type, layout, **kwargs)


class GlobalMaxPool1D(_GlobalPooling):
    """Maximum over all positions of 1 dimension, which keep size 1.

    Parameters
    ----------
    layout : {'NCW', 'NWC'}
        Order of the axes.
    **kwargs
        prefix, params.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.nn.GlobalMaxPool1D()(mx.nd.ones((1, 1, 4))).shape
    (1, 1, 1)
    """

    _ndim, _pool_type = 1, "max"


@with_defaults(layout="NCHW")
class GlobalMaxPool2D(_GlobalPooling):
    """Maximum over all positions of 2 dimensions; parameters as for `GlobalMaxPool1D`."""

    _ndim, _pool_type = 2, "max"


@with_defaults(layout="NCDHW")
class GlobalMaxPool3D(_GlobalPooling):
    """Maximum over all positions of 3 dimensions; parameters as for `GlobalMaxPool1D`."""

    _ndim, _pool_type = 3, "max"


class GlobalAvgPool1D(_GlobalPooling):
    """Average over all positions of 1 dimension, which keep size 1.

    Parameters
    ----------
    layout : {'NCW', 'NWC'}
        Order of the axes.
    **kwargs
        prefix, params.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.nn.GlobalAvgPool1D()(mx.nd.ones((1, 1, 4))).shape
    (1, 1, 1)
    """

    _ndim = 1


@with_defaults(layout="NCHW")
class GlobalAvgPool2D(_GlobalPooling):
    """Average over all positions of 2 dimensions; parameters as for `GlobalAvgPool1D`."""

    _ndim = 2


@with_defaults(layout="NCDHW")
class GlobalAvgPool3D(_GlobalPooling):
    """Average over all positions of 3 dimensions; parameters as for `GlobalAvgPool1D`."""

    _ndim = 3
