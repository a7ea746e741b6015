"""Pooling over regions of interest."""

from __future__ import annotations

import math

import numpy as np

from mxcore.plugin import Call, Params, Spec

from ..places import Places
from .common import Array, Outs, binds, few, is_float, kernel_for


def _pools(p: Params, data: Spec, rois: Spec) -> bool:
    return data.size > 0 and few(data) and rois.shape[0] * data.shape[1] * math.prod(p.pooled_size) < 2**31


@binds("ROIPooling", when=_pools)
def _roi_pool(k: Call, p: Params, outs: Outs, data: Array, rois: Array) -> None:
    (n, c, h, w), (ph, pw) = data.shape, p.pooled_size
    size = rois.shape[0] * c * ph * pw
    run = kernel_for(k, "roi", "roi_pool", data.dtype)
    run.each(size, data, rois, *outs, size, n, c, h, w, ph, pw, p.spatial_scale)


@binds(
    "_backward_ROIPooling",
    dtypes=None,
    when=lambda p, dy, data, maxidx, rois: (
        dy.dtype == rois.dtype and is_float(dy.dtype) and maxidx.dtype == np.int64 and data.size > 0 and few(dy, data)
    ),
)
def _backward_roi_pool(k: Call, p: Params, outs: Outs, dy: Array, data: Array, maxidx: Array, rois: Array) -> None:
    n, c, h, w = data.shape
    size, bins = math.prod(dy.shape), math.prod(dy.shape[2:])
    places, given = Places(k.device, k.ctx.device_id, size), k.device.empty((size,), dy.dtype, k.ctx.device_id)
    run = kernel_for(k, "roi", "roi_places", dy.dtype)
    run.each(size, dy, maxidx, rois, places.found, given, size, n, c, bins, h * w)
    places.add_rows(given, outs[0].reshape(-1), 1, n * c * h * w, 1)
