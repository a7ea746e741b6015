"""Deformable convolutions: values by definition, in between pixels, at the edges; what they refuse."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, nd
from mxcore.gluon.contrib import cnn


def pixel(image, y, x, modulated):
    """An image at a place between its pixels, as the papers' code has it."""
    h, w = image.shape
    if modulated:
        if not (-1 < y < h and -1 < x < w):
            return 0.0
        total = 0.0
        for i in (int(np.floor(y)), int(np.floor(y)) + 1):
            for j in (int(np.floor(x)), int(np.floor(x)) + 1):
                if 0 <= i < h and 0 <= j < w:
                    total += image[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
        return total
    if not (0 <= y < h and 0 <= x < w):
        return 0.0
    y, x = min(y, h - 1), min(x, w - 1)
    i, j = int(y), int(x)
    below, right = min(i + 1, h - 1), min(j + 1, w - 1)
    return (image[i, j] * (j + 1 - x) + image[i, right] * (x - j)) * (i + 1 - y) + (
        image[below, j] * (j + 1 - x) + image[below, right] * (x - j)
    ) * (y - i)


def by_definition(data, offset, mask, weight, stride, pad, dilate, groups, deformable):
    n, c, *_ = data.shape
    f, per, kh, kw = weight.shape
    out = np.zeros((n, f, *offset.shape[2:]))
    for b, k, oy, ox in np.ndindex(*out.shape):
        for q in range(per):
            channel = k // (f // groups) * per + q
            d = channel // (c // deformable)
            for i in range(kh):
                for j in range(kw):
                    at = d * kh * kw + i * kw + j
                    y = oy * stride[0] - pad[0] + i * dilate[0] + offset[b, 2 * at, oy, ox]
                    x = ox * stride[1] - pad[1] + j * dilate[1] + offset[b, 2 * at + 1, oy, ox]
                    value = pixel(data[b, channel], y, x, mask is not None) * weight[k, q, i, j]
                    out[b, k, oy, ox] += value if mask is None else value * mask[b, at, oy, ox]
    return out


@pytest.mark.parametrize("modulated", [False, True])
@pytest.mark.parametrize(
    "stride, pad, dilate, groups, deformable",
    [
        ((1, 1), (1, 1), (1, 1), 1, 1),
        ((2, 1), (0, 2), (1, 2), 2, 1),
        ((1, 2), (2, 1), (2, 1), 1, 2),
        ((1, 1), (1, 1), (1, 1), 2, 4),
    ],
)
def test_by_definition(modulated, stride, pad, dilate, groups, deformable):
    rs = np.random.RandomState(0)
    data, weight = rs.randn(2, 4, 6, 5), rs.randn(4, 4 // groups, 3, 2)
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip((6, 5), pad, dilate, (3, 2), stride)]
    offset, mask = (
        rs.uniform(-3, 3, (2, deformable * 12, *out)),
        rs.rand(2, deformable * 6, *out) if modulated else None,
    )
    offset.reshape(-1)[:40] = np.round(offset.reshape(-1)[:40])  # on pixels, and at the edges
    op = nd.contrib.ModulatedDeformableConvolution if modulated else nd.contrib.DeformableConvolution
    arrays = [nd.array(a, dtype="float64") for a in (data, offset, mask, weight) if a is not None]
    got = op(
        *arrays,
        kernel=(3, 2),
        stride=stride,
        pad=pad,
        dilate=dilate,
        num_filter=4,
        num_group=groups,
        num_deformable_group=deformable,
        no_bias=True,
    )
    want = by_definition(data, offset, mask, weight, stride, pad, dilate, groups, deformable)
    np.testing.assert_allclose(got.asnumpy(), want, atol=1e-10)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("modulated", [False, True])
def test_places_that_are_nowhere(modulated, bad):
    op = nd.contrib.ModulatedDeformableConvolution if modulated else nd.contrib.DeformableConvolution
    arrays = [
        nd.ones((1, 1, 3, 3)),
        nd.full((1, 2, 3, 3), bad),
        *([nd.ones((1, 1, 3, 3))] if modulated else []),
        nd.ones((1, 1, 1, 1)),
    ]
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        y = op(*arrays, kernel=(1, 1), num_filter=1, no_bias=True)
    y.backward()
    assert not y.asnumpy().any() and not arrays[0].grad.asnumpy().any() and not arrays[1].grad.asnumpy().any()


def test_without_offsets_it_is_a_convolution():
    rs = np.random.RandomState(1)
    x, w, b = nd.array(rs.randn(2, 4, 6, 5)), nd.array(rs.randn(6, 2, 3, 3)), nd.array(rs.randn(6))
    kwargs = dict(kernel=(3, 3), pad=(1, 1), stride=(2, 1), num_filter=6, num_group=2)
    want = nd.Convolution(x, w, b, **kwargs)
    offset = nd.zeros((2, 18, *want.shape[2:]))
    assert np.allclose(
        nd.contrib.ModulatedDeformableConvolution(
            x, offset, nd.ones((2, 9, *want.shape[2:])), w, b, **kwargs
        ).asnumpy(),
        want.asnumpy(),
        atol=1e-5,
    )
    inner = nd.contrib.DeformableConvolution(x, offset, w, b, **kwargs).asnumpy()
    assert np.allclose(inner, want.asnumpy(), atol=1e-5)


@pytest.mark.parametrize(
    "shapes, params, text",
    [
        ([(2, 4, 5, 6), (2, 17, 5, 6)], {}, "offset"),
        ([(2, 4, 5, 6), (2, 18, 4, 6)], {}, "offset"),
        ([(2, 4, 5), None], {}, "rank"),
        (
            [(2, 4, 5, 6), None],
            dict(num_deformable_group=3),
            "number of channels 4 is no multiple of num_deformable_group=3",
        ),
        ([(2, 4, 5, 6), None], dict(num_group=3), "number of channels 4 is no multiple of num_group=3"),
        ([(2, 4, 5, 6), None], dict(num_group=4, num_filter=6), "num_filter 6 is no multiple of num_group=4"),
        ([(2, 4, 5, 6), None], dict(kernel=(3,), pad=(1,)), "kernel .3,. must have 2 dimensions"),
        ([(2, 4, 5, 6), None], dict(layout="NCW"), "layout NCW"),
        ([(2, 4, 5, 6), None], dict(kernel=(9, 9), pad=(1, 1)), "the kernel covers 9"),
    ],
)
def test_refusals(shapes, params, text):
    params = {"kernel": (3, 3), "pad": (1, 1), "num_filter": 4, "no_bias": True, **params}
    data, offset = shapes
    k = int(np.prod(params["kernel"]))
    with pytest.raises(ValueError, match=text):
        nd.contrib.DeformableConvolution(
            nd.ones(data), nd.ones(offset or (2, 2 * k, 5, 6)), nd.ones((4, 4, *params["kernel"])), **params
        )
    with pytest.raises(TypeError, match="whole"):
        nd.contrib.DeformableConvolution(
            *(nd.ones(s, dtype="int32") for s in ((2, 4, 5, 6), (2, 18, 5, 6), (4, 4, 3, 3))),
            kernel=(3, 3),
            pad=(1, 1),
            num_filter=4,
            no_bias=True,
        )


def test_shapes_are_inferred():
    s = mx.sym.contrib.ModulatedDeformableConvolution(
        mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, num_deformable_group=2, name="d"
    )
    shapes, outs, _ = s.infer_shape(data=(2, 4, 7, 6))
    assert dict(zip(s.list_arguments(), shapes)) == {
        "data": (2, 4, 7, 6),
        "d_offset": (2, 36, 5, 4),
        "d_mask": (2, 18, 5, 4),
        "d_weight": (4, 4, 3, 3),
        "d_bias": (4,),
    } and outs == [(2, 4, 5, 4)]


# -- layers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, text",
    [("DeformableConvolution", "deformable_conv"), ("ModulatedDeformableConvolution", "modulated_deformable_conv")],
)
@pytest.mark.parametrize("hybrid", [False, True])
def test_layers_learn_their_offsets(kind, text, hybrid):
    net = getattr(cnn, kind)(
        2,
        3,
        padding=1,
        num_deformable_group=2,
        activation="relu",
        weight_initializer=mx.init.Xavier(),
        offset_weight_initializer=mx.init.Normal(0.1),
    )
    assert net.prefix.startswith(text) and repr(net).startswith(
        f"{kind}(None -> 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), Activation(relu))"
    )
    mx.random.seed(1)
    net.initialize()
    net.hybridize(hybrid)
    rs = np.random.RandomState(0)
    x, target = nd.array(rs.randn(4, 4, 6, 6)), nd.array(rs.rand(4, 2, 6, 6))
    trainer, losses = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.03}), []
    for _ in range(30):
        with autograd.record():
            loss = ((net(x) - target) ** 2).mean()
        loss.backward()
        trainer.step(1)
        losses.append(loss.asscalar())
    assert losses[-1] < 0.75 * losses[0] and abs(net.offset_weight.grad()).sum().asscalar() > 0


def test_layers_refuse():
    for kwargs, text in (
        (dict(layout="NHWC"), "layout must be 'NCHW'"),
        (dict(adj=1), "adj is for transposed"),
        (dict(kernel_size=(3,)), "kernel_size must be"),
        (dict(groups=4, kernel_size=3), "18 offset channels cannot be cut into 4 groups"),
        (dict(groups=3), "4 output channels"),
    ):
        with pytest.raises(ValueError, match=text):
            cnn.DeformableConvolution(4, **{"in_channels": 0, **kwargs})
    layer = cnn.DeformableConvolution(2)
    layer.initialize()
    with pytest.raises(ValueError, match="takes input with axes NCHW, got an array of shape"):
        layer(nd.ones((2, 3)))
    assert (
        "bias=False" in repr(cnn.DeformableConvolution(2, groups=2, use_bias=False, dilation=2, kernel_size=2))
        and not cnn.DeformableConvolution(2, offset_use_bias=False).offset_bias
    )
