"""Bent convolutions by kernels against the bodies, in any threads: groups, steps, edges, single gradients."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import nd
from mxcore.testing.ways import reference_bodies
from mxcore_cpu.kernels import deform, spatial

CASES = [
    ((2, 4, 9, 7), {"kernel": (3, 3), "pad": (1, 1), "num_filter": 6, "num_group": 2, "num_deformable_group": 2}),
    (
        (1, 6, 8, 11),
        {"kernel": (2, 3), "stride": (2, 1), "dilate": (1, 2), "num_filter": 3, "num_group": 3, "no_bias": True},
    ),
    # More places than are summed at a time.
    ((3, 2, 20, 23), {"kernel": (3, 2), "pad": (0, 3), "num_filter": 4, "num_deformable_group": 2}),
]
NAMES = "data offset mask weight bias".split()


@pytest.fixture(params=[1, 3], autouse=True)
def workers(request, monkeypatch):
    for kernel in (spatial.sample, spatial.to_data, deform._locate, deform._to_places):
        monkeypatch.setattr(kernel, "workers", lambda work: request.param)


def arrays(shape, params, modulated, dtype):
    rng = np.random.default_rng(3)
    op = getattr(mx.sym.contrib, ("Modulated" if modulated else "") + "DeformableConvolution")
    names = [n for n in NAMES if (modulated or n != "mask") and (n != "bias" or not params.get("no_bias"))]
    shapes = op(*map(mx.sym.Variable, names), **params).infer_shape(data=shape)[0]
    found = {n: rng.normal(0, 3 if n == "offset" else 1, s).astype(dtype) for n, s in zip(names, shapes)}
    strange = found["offset"].reshape(-1)
    strange[:6] = np.nan, np.inf, -np.inf, 1e30, -1, 0  # looked for nowhere, and at the very edges
    strange[6:40] = np.round(strange[6:40])
    return found


def outcome(found, params, modulated, reqs):
    inputs = {n: nd.array(v, dtype=v.dtype) for n, v in found.items()}
    for n, x in inputs.items():
        x.attach_grad("write" if n in reqs else "null")
    with mx.autograd.record():
        y = getattr(nd.contrib, ("Modulated" if modulated else "") + "DeformableConvolution")(
            *inputs.values(), **params
        )
        z = (y * nd.arange(y.size, dtype=y.dtype).reshape(y.shape)).mean()
    z.backward()
    return [y.asnumpy(), *(inputs[n].grad.asnumpy() for n in reqs)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("modulated", [False, True])
@pytest.mark.parametrize("shape, params", CASES)
def test_as_the_body(shape, params, modulated, dtype):
    found = arrays(shape, params, modulated, dtype)
    got = outcome(found, params, modulated, [*found])
    with reference_bodies():
        want = outcome(found, params, modulated, [*found])
    for a, b in zip(got, want):
        np.testing.assert_allclose(
            a,
            b,
            rtol=2e-4 if dtype == "float32" else 1e-9,
            atol=(2e-4 if dtype == "float32" else 1e-10) * np.abs(b).max(),
        )
    for n in found:  # each gradient alone is what it is beside the others
        alone = outcome(found, params, modulated, [n])[1]
        np.testing.assert_array_equal(alone, got[1 + [*found].index(n)])


@pytest.mark.parametrize("modulated", [False, True])
def test_strided_inputs_and_results(modulated):
    shape, params = CASES[0]
    found = arrays(shape, params, modulated, "float64")
    want = outcome(found, params, modulated, ["data"])[0]
    windows = deform.Windows((3, 3), (1, 1), (1, 1), (1, 1), 2, 2)
    apart = {n: np.repeat(v, 2, -1)[..., ::2] for n, v in found.items()}
    room = np.full((*want.shape[:3], 2 * want.shape[3]), 7.0)
    deform.deformable_convolution(
        apart["data"], apart["offset"], apart.get("mask"), apart["weight"], apart["bias"], room[..., ::2], windows
    )
    np.testing.assert_array_equal(room[..., ::2], want)
    assert (room[..., 1::2] == 7).all()


def test_pixels_beyond_a_place_do_not_count():
    x = nd.array([[[[np.inf, 1], [np.nan, 2]]]])
    offset = nd.array(np.reshape([-5.0, 0.0], (1, 2, 1, 1)))
    y = nd.contrib.DeformableConvolution(
        x, offset, nd.ones((1, 1, 1, 1)), kernel=(1, 1), num_filter=1, stride=(2, 2), no_bias=True
    )
    assert y.asnumpy().ravel().tolist() == [0]
