"""Places in images."""

from __future__ import annotations

import numpy as np

from mxcore.layouts import axes
from mxcore.plugin import Call, Params

from ..kernels import deform, roi, spatial
from ..typing import Array, Outs
from .common import FLOATS, cpu


@cpu.kernel("BilinearSampler", dtypes=FLOATS, out=True)
def _bilinear_sampler(k: Call, p: Params, outs: Outs, data: Array, grid: Array) -> None:
    spatial.bilinear_sample(data, grid, outs[0])


@cpu.kernel("_backward_BilinearSampler", dtypes=FLOATS, out=True)
def _backward_bilinear_sampler(k: Call, p: Params, outs: Outs, dy: Array, data: Array, grid: Array) -> None:
    spatial.bilinear_sample_backward(dy, data, grid, *outs)


@cpu.kernel("SpatialTransformer", dtypes=FLOATS, out=True)
def _spatial_transformer(k: Call, p: Params, outs: Outs, data: Array, loc: Array) -> None:
    spatial.bilinear_sample(data, spatial.affine_grid(loc, p.target_shape), outs[0])


@cpu.kernel("_contrib_BilinearResize2D", dtypes=FLOATS, out=True)
def _bilinear_resize(k: Call, p: Params, outs: Outs, data: Array, *like: Array) -> None:
    spatial.bilinear_resize(data, outs[0], align_corners=p.align_corners)


@cpu.kernel("ROIPooling", dtypes=FLOATS, out=True)
def _roi_pool(k: Call, p: Params, outs: Outs, data: Array, rois: Array) -> None:
    index = np.empty(outs[0].shape, np.int64) if outs[1] is None else outs[1]
    roi.roi_pool(data, rois, outs[0], index, scale=p.spatial_scale)


@cpu.kernel("_backward_ROIPooling", when=lambda p, dy, *rest: dy.dtype.kind == "f" and dy.dtype.itemsize >= 4, out=True)
def _backward_roi_pool(k: Call, p: Params, outs: Outs, dy: Array, like: Array, index: Array, rois: Array) -> None:
    roi.roi_pool_backward(dy, rois, index, outs[0])


def _windows(p: Params) -> deform.Windows:
    return deform.Windows(
        p.kernel, axes(p.stride, 2, 1), axes(p.dilate, 2, 1), axes(p.pad, 2, 0), p.num_group, p.num_deformable_group
    )


@cpu.kernel("_contrib_DeformableConvolution", dtypes=FLOATS, out=True)
def _deformable(
    k: Call, p: Params, outs: Outs, data: Array, offset: Array, weight: Array, bias: Array | None = None
) -> None:
    deform.deformable_convolution(data, offset, None, weight, bias, outs[0], _windows(p))


@cpu.kernel("_contrib_ModulatedDeformableConvolution", dtypes=FLOATS, out=True)
def _modulated_deformable(
    k: Call, p: Params, outs: Outs, data: Array, offset: Array, mask: Array, weight: Array, bias: Array | None = None
) -> None:
    deform.deformable_convolution(data, offset, mask, weight, bias, outs[0], _windows(p))


@cpu.kernel("_backward_DeformableConvolution", dtypes=FLOATS, out=True)
def _backward_deformable(k: Call, p: Params, outs: Outs, dy: Array, data: Array, offset: Array, weight: Array) -> None:
    d_data, d_offset, d_weight, d_bias = [*outs, None][:4]
    deform.deformable_convolution_backward(
        dy, data, offset, None, weight, d_data, d_offset, None, d_weight, d_bias, _windows(p)
    )


@cpu.kernel("_backward_ModulatedDeformableConvolution", dtypes=FLOATS, out=True)
def _backward_modulated_deformable(
    k: Call, p: Params, outs: Outs, dy: Array, data: Array, offset: Array, mask: Array, weight: Array
) -> None:
    d_data, d_offset, d_mask, d_weight, d_bias = [*outs, None][:5]
    deform.deformable_convolution_backward(
        dy, data, offset, mask, weight, d_data, d_offset, d_mask, d_weight, d_bias, _windows(p)
    )
