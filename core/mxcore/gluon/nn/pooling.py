"""Pooling layers of one to three dimensions."""

from __future__ import annotations

from ..._signatures import with_defaults
from ..block import HybridBlock
from .convolution import dimensions, spread

__all__ = ["AvgPool1D", "AvgPool2D", "AvgPool3D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D",
           "GlobalMaxPool1D", "GlobalMaxPool2D", "GlobalMaxPool3D", "MaxPool1D", "MaxPool2D",
           "MaxPool3D"]  # fmt: skip


class _Pooling(HybridBlock):
    """All pooling layers. Toolkits derive their own from it: parameters and attributes are MXNet's.

    Its constructor is called by name, not by `super()`, as layers lend theirs to those of other dimensions.
    """

    _ndim: int | None = None

    def __init__(
        self,
        pool_size,
        strides,
        padding,
        ceil_mode,
        global_pool,
        pool_type,
        layout,
        count_include_pad=None,
        prefix=None,
        params=None,
    ):
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

    def _alias(self):
        return "pool"

    def __repr__(self):
        k = self._kwargs
        return (
            f"{type(self).__name__}(size={k['kernel']}, stride={k['stride']}, padding={k['pad']}, "
            f"ceil_mode={k['pooling_convention'] == 'full'}, global_pool={k['global_pool']}, "
            f"pool_type={k['pool_type']}, layout={k['layout']})"
        )

    def hybrid_forward(self, F, x):
        return F.Pooling(x, name="fwd", **self._kwargs)


class MaxPool1D(_Pooling):
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

    def __init__(self, pool_size=2, strides=None, padding=0, layout="NCW", ceil_mode=False, **kwargs):
        _Pooling.__init__(self, pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool2D(_Pooling):
    """Maximum pooling in 2 dimensions; parameters as for `MaxPool1D`."""

    _ndim = 2
    __init__ = with_defaults(MaxPool1D.__init__, pool_size=(2, 2), layout="NCHW")


class MaxPool3D(_Pooling):
    """Maximum pooling in 3 dimensions; parameters as for `MaxPool1D`."""

    _ndim = 3

    def __init__(self, pool_size=(2, 2, 2), strides=None, padding=0, ceil_mode=False, layout="NCDHW", **kwargs):
        _Pooling.__init__(self, pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


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
        self, pool_size=2, strides=None, padding=0, layout="NCW", ceil_mode=False, count_include_pad=True, **kwargs
    ):
        _Pooling.__init__(
            self, pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs
        )


class AvgPool2D(_Pooling):
    """Average pooling in 2 dimensions; parameters as for `AvgPool1D`."""

    _ndim = 2

    def __init__(
        self,
        pool_size=(2, 2),
        strides=None,
        padding=0,
        ceil_mode=False,
        layout="NCHW",
        count_include_pad=True,
        **kwargs,
    ):
        _Pooling.__init__(
            self, pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs
        )


class AvgPool3D(_Pooling):
    """Average pooling in 3 dimensions; parameters as for `AvgPool1D`."""

    _ndim = 3
    __init__ = with_defaults(AvgPool2D.__init__, pool_size=(2, 2, 2), layout="NCDHW")


class GlobalMaxPool1D(_Pooling):
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

    _ndim = 1

    def __init__(self, layout="NCW", **kwargs):
        _Pooling.__init__(self, 1, None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool2D(_Pooling):
    """Maximum over all positions of 2 dimensions; parameters as for `GlobalMaxPool1D`."""

    _ndim = 2
    __init__ = with_defaults(GlobalMaxPool1D.__init__, layout="NCHW")


class GlobalMaxPool3D(_Pooling):
    """Maximum over all positions of 3 dimensions; parameters as for `GlobalMaxPool1D`."""

    _ndim = 3
    __init__ = with_defaults(GlobalMaxPool1D.__init__, layout="NCDHW")


class GlobalAvgPool1D(_Pooling):
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

    def __init__(self, layout="NCW", **kwargs):
        _Pooling.__init__(self, 1, None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool2D(_Pooling):
    """Average over all positions of 2 dimensions; parameters as for `GlobalAvgPool1D`."""

    _ndim = 2
    __init__ = with_defaults(GlobalAvgPool1D.__init__, layout="NCHW")


class GlobalAvgPool3D(_Pooling):
    """Average over all positions of 3 dimensions; parameters as for `GlobalAvgPool1D`."""

    _ndim = 3
    __init__ = with_defaults(GlobalAvgPool1D.__init__, layout="NCDHW")
