"""Operators of detection, written so that MXNet and mxcore run the same lines.

Run by an interpreter that has MXNet, it is MXNet's side of the comparison.
"""

from __future__ import annotations

import numpy as np

from .peer import serve


def _boxes(rs, shape, largest):
    corner = rs.uniform(0, 1, (*shape, 2))
    return np.concatenate([corner, corner + rs.uniform(0.02, largest, (*shape, 2))], -1)


def _nms(mx, rs, batch=8, n=5000):
    rows = np.concatenate([rs.randint(0, 20, (batch, n, 1)), rs.rand(batch, n, 1), _boxes(rs, (batch, n), 0.2)], -1)
    data = mx.nd.array(rows)
    return [], lambda: mx.nd.contrib.box_nms(data, id_index=0)


def _detection(mx, rs):
    prob = np.exp(rs.randn(8, 21, 8732) * 2)
    ins = prob / prob.sum(1, keepdims=True), rs.randn(8, 8732 * 4) * 0.5, _boxes(rs, (1, 8732), 0.4)
    ins = [mx.nd.array(v) for v in ins]
    return [], lambda: mx.nd.contrib.MultiBoxDetection(*ins, threshold=0.01, nms_threshold=0.45, nms_topk=400)


def _target(mx, rs):
    label = np.concatenate([rs.randint(0, 20, (8, 16, 1)), _boxes(rs, (8, 16), 0.4)], -1)
    label[:, 10:] = -1
    ins = [mx.nd.array(v) for v in (_boxes(rs, (1, 8732), 0.4), label, rs.randn(8, 21, 8732))]
    return [], lambda: mx.nd.contrib.MultiBoxTarget(*ins, negative_mining_ratio=3, negative_mining_thresh=0.5)


def _deformable(mx, rs, name="DeformableConvolution", masks=()):
    shapes = (2, 64, 56, 56), (2, 18, 56, 56), *masks, (64, 64, 3, 3)
    ins = [mx.nd.array(rs.randn(*s) * 0.1) for s in shapes]
    convolve = getattr(mx.nd.contrib, name)
    return ins, lambda: convolve(*ins, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True)


def _modulated(mx, rs):  # MXNet has its backward on GPUs only
    return _deformable(mx, rs, "ModulatedDeformableConvolution", [(2, 9, 56, 56)])


def _align(mx, rs):
    corner = rs.uniform(0, 600, (512, 2))
    rois = np.concatenate([rs.randint(0, 2, (512, 1)), corner, corner + rs.uniform(20, 200, (512, 2))], 1)
    data = mx.nd.array(rs.randn(2, 256, 50, 50))
    return [data], lambda: mx.nd.contrib.ROIAlign(
        data, mx.nd.array(rois), pooled_size=(7, 7), spatial_scale=1 / 16, sample_ratio=2
    )


#: Case -> (what makes it, whether backward runs as well)
CASES = {
    "box_nms, 8 x 5000": (_nms, False),
    "box_nms, 1 x 10000": (lambda mx, rs: _nms(mx, rs, 1, 10000), False),
    "MultiBoxDetection, 8 x 8732": (_detection, False),
    "MultiBoxTarget, 8 x 8732": (_target, False),
    "DeformableConvolution, 2 x 64 x 56 x 56": (_deformable, False),
    "DeformableConvolution with backward": (_deformable, True),
    "ModulatedDeformableConvolution, 2 x 64 x 56 x 56": (_modulated, False),
    "ROIAlign, 512 boxes": (_align, False),
    "ROIAlign, 512 boxes, with backward": (_align, True),
}


def runner(mx, case):
    """A function that runs a case, waits, and returns a result."""
    make, back = CASES[case]
    variables, forward = make(mx, np.random.RandomState(0))
    if back:
        for v in variables:
            v.attach_grad()

    def run():
        with mx.autograd.record(back):
            y = forward()
        if back:
            y.backward()
        for v in [v.grad for v in variables] if back else y if isinstance(y, list) else [y]:
            v.wait_to_read()
        return variables[0].grad if back else y[-1] if isinstance(y, list) else y

    return run


if __name__ == "__main__":
    import mxnet

    serve(lambda case: runner(mxnet, case))
