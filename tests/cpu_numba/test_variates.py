"""Random numbers of kernels are those of the reference bodies, from the same words."""

import types

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.ops.random import variates as bodies
from mxcore_cpu.device import CPU
from mxcore_cpu.kernels import variates

rng = np.random.default_rng(0)
COUNT = 800

#: Operator -> arrays of parameters, those that need nothing drawn among them.
PARAMETERS = {
    "_sample_poisson": [np.concatenate([[0.0, 9.9999, 10.0], rng.random(COUNT) * 12, rng.random(COUNT) * 300])],
    "_sample_gamma": [np.concatenate([[1.0], 1e-3 + rng.random(COUNT) * 3]), rng.random(COUNT + 1) + 1e-3],
    "_sample_negative_binomial": [rng.integers(0, 20, COUNT), rng.random(COUNT) * 0.9 + 0.05],
    "_sample_generalized_negative_binomial": [rng.random(COUNT) * 20, np.maximum(rng.random(COUNT) - 0.2, 0)],
}


def reference(name, params, *arrays, key=(7, 0, 0)):
    """What the operator's body gives for a key."""
    op = tables.ops.get(name)
    k = types.SimpleNamespace(
        xp=np, device=CPU(), rng=CPU().rng(key, 0), shapes=[params["shape"]] if "shape" in params else None
    )
    return op.body(k, op.parser(params), *arrays)


def ours(name, params, *arrays):
    mx.random.seed(7)
    return getattr(mx.nd._internal, name)(*[mx.nd.array(a, dtype=a.dtype) for a in arrays], **params).asnumpy()


@pytest.mark.parametrize("shape", [(), (50,)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", PARAMETERS)
def test_arrays_of_parameters(name, dtype, shape):
    arrays = [a.astype("f4") for a in PARAMETERS[name]]
    got, expected = (
        ours(name, {"shape": shape, "dtype": dtype}, *arrays),
        reference(name, {"shape": shape, "dtype": dtype}, *arrays),
    )
    np.testing.assert_allclose(
        got, expected, rtol=1e-3 if dtype == "float16" else 1e-6 if dtype == "float32" else 1e-12
    )


@pytest.mark.parametrize(
    "name, value",
    [
        ("_sample_poisson", -1.0),
        ("_sample_gamma", 0.0),
        ("_sample_gamma", np.nan),
        ("_sample_negative_binomial", -1.0),
        ("_sample_generalized_negative_binomial", -1.0),
    ],
)
def test_impossible_parameters_are_refused_by_both(name, value):
    arrays = [np.full(3, 0.5, "f4") for _ in PARAMETERS[name]]
    arrays[0][1] = value
    for draw in (ours, reference):
        with pytest.raises(ValueError, match=rf"must be .*, got {value} \(element 1\)"):
            draw(name, {}, *arrays)


@pytest.mark.parametrize("kind", ["gamma", "poisson"])
def test_without_a_law_the_kernel_gives_what_the_reference_gives(kind):
    values = np.array([0.0, -1.0, np.nan, 1.0, 30.0])
    expected = getattr(bodies, kind)(CPU().rng((7, 0, 0), 0), values)
    np.testing.assert_allclose(getattr(variates, kind)(CPU().rng((7, 0, 0), 0), values, 1), expected, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 40.0])
def test_gamma_of_numbers(alpha):
    params = {"alpha": alpha, "beta": 2.5, "shape": (40, 1000), "dtype": "float64"}
    np.testing.assert_allclose(ours("_random_gamma", params), reference("_random_gamma", params), rtol=1e-12)
    with pytest.raises(mx.MXNetError, match="beta must be above 0"):
        mx.nd.random.gamma(alpha=alpha, beta=-1.0, shape=(2,))


@pytest.mark.parametrize("shape", [(1,), (70_000,), (5000, 3), (40, 2, 300)])
def test_shuffle(shape):
    data = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    np.testing.assert_array_equal(ours("_shuffle", {}, data), reference("_shuffle", {}, data))
