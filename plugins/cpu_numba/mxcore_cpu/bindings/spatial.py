"""Places in images."""
from __future__ import annotations

import numpy as np

from ..kernels import roi, spatial
from .common import FLOATS, cpu


@cpu.kernel("BilinearSampler", dtypes=FLOATS, out=True)
def _bilinear_sampler(k, p, outs, data, grid):
    spatial.bilinear_sample(data, grid, outs[0])


@cpu.kernel("_backward_BilinearSampler", dtypes=FLOATS, out=True)
def _backward_bilinear_sampler(k, p, outs, dy, data, grid):
    spatial.bilinear_sample_backward(dy, data, grid, *outs)


@cpu.kernel("SpatialTransformer", dtypes=FLOATS, out=True)
def _spatial_transformer(k, p, outs, data, loc):
    spatial.bilinear_sample(data, spatial.affine_grid(loc, p.target_shape), outs[0])


@cpu.kernel("_contrib_BilinearResize2D", dtypes=FLOATS, out=True)
def _bilinear_resize(k, p, outs, data, *like):
    spatial.bilinear_resize(data, outs[0], align_corners=p.align_corners)


@cpu.kernel("ROIPooling", dtypes=FLOATS, out=True)
def _roi_pool(k, p, outs, data, rois):
    index = np.empty(outs[0].shape, np.int64) if outs[1] is None else outs[1]
    roi.roi_pool(data, rois, outs[0], index, scale=p.spatial_scale)


@cpu.kernel("_backward_ROIPooling", when=lambda p, dy, *rest: dy.dtype.kind == "f" and dy.dtype.itemsize >= 4, out=True)
def _backward_roi_pool(k, p, outs, dy, like, index, rois):
    roi.roi_pool_backward(dy, rois, index, outs[0])
