"""UpSampling: factors, several images, the bilinear kernel, refusals."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.gradcheck import check_grads

from .golden.corners import wave


def test_repetition():
    y = mx.nd.UpSampling(mx.nd.array([[[[1, 2], [3, 4]]]]), scale=2, sample_type="nearest").asnumpy()
    assert y.tolist() == [[[[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]]]


@pytest.mark.parametrize("mode", ["concat", "sum"])
def test_several_images(mode):
    check_grads(
        lambda a, b: mx.nd.UpSampling(a, b, scale=4, sample_type="nearest", multi_input_mode=mode),
        [wave((1, 2, 1, 2), 1), wave((1, 2, 2, 4), 2)],
    )


def test_bilinear_of_a_constant_is_constant_inside():
    s = mx.sym.UpSampling(mx.sym.var("x"), scale=2, sample_type="bilinear", num_filter=3, num_args=2, name="up")
    assert s.list_arguments() == ["x", "up_weight"]
    assert s.infer_shape(x=(1, 3, 4, 5))[:2] == ([(1, 3, 4, 5), (3, 1, 4, 4)], [(1, 3, 8, 10)])
    tent = np.array([0.25, 0.75, 0.75, 0.25], np.float32)
    w = np.broadcast_to(np.outer(tent, tent), (3, 1, 4, 4))
    y = mx.nd.UpSampling(
        mx.nd.ones((1, 3, 4, 5)), mx.nd.array(w), scale=2, sample_type="bilinear", num_filter=3
    ).asnumpy()
    np.testing.assert_allclose(y[:, :, 1:-1, 1:-1], 1, rtol=1e-6)


def test_refusals(shapes):
    kw = dict(scale=2, sample_type="nearest", num_args=2)
    assert shapes("UpSampling", [(1, 2, 3, 3), (1, 4, 6, 6)], **kw)[1] == [(1, 6, 6, 6)]
    with pytest.raises(ValueError, match=r"cannot be enlarged to \(6, 6\) by one whole factor"):
        shapes("UpSampling", [(1, 2, 3, 3), (1, 4, 4, 4)], **kw)
    with pytest.raises(ValueError, match="must be \\(N, C, H, W\\)"):
        shapes("UpSampling", [(1, 2, 3), None], **kw)
    with pytest.raises(ValueError, match="needs num_filter"):
        shapes("UpSampling", [(1, 2, 3, 3), None], scale=2, sample_type="bilinear", num_args=2)
