"""The Hawkes process against its definition and MXNet's numbers; the quadratic function."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.gradcheck import check_grads

NAMES = "lda alpha beta state lags marks valid_length max_time".split()


def values(shape, phase, scale, offset):
    return (
        (offset + scale * np.sin(np.arange(1, int(np.prod(shape)) + 1) * 1.7 + phase)).astype("float32").reshape(shape)
    )


def case(dtype="float32"):
    """Two sequences of at most three events, of two marks."""
    floats = {
        "lda": values((2, 2), 1, 0.5, 2),
        "alpha": values((2,), 2, 0.2, 0.4),
        "beta": values((2,), 3, 0.5, 1.5),
        "state": values((2, 2), 4, 0.3, 0.5),
        "lags": values((2, 3), 5, 0.4, 0.8),
        "valid_length": [2, 3],
        "max_time": [5.0, 6.0],
    }
    found = {n: mx.nd.array(v, dtype=dtype) for n, v in floats.items()}
    found["marks"] = mx.nd.array([[0, 1, 0], [1, 1, 0]], dtype="int32")
    return {n: found[n] for n in NAMES}


def by_definition(lda, alpha, beta, state, lags, marks, valid_length, max_time):
    """log likelihood = sum of log intensities - integral of all intensities, each summed over all events before."""
    total, final = [], []
    for i in range(len(lags)):
        n = int(valid_length[i])
        times, kinds, value = np.cumsum(lags[i, :n]), marks[i, :n], 0.0
        for t, c in zip(times, kinds):
            before = times[(times < t) & (kinds == c)]
            value += np.log(
                lda[i, c]
                + alpha[c] * beta[c] * (state[i, c] * np.exp(-beta[c] * t) + np.exp(-beta[c] * (t - before)).sum())
            )
        end = max_time[i]
        for c in range(len(alpha)):
            own = times[kinds == c]
            value -= lda[i, c] * end + alpha[c] * (
                state[i, c] * (1 - np.exp(-beta[c] * end)) + (1 - np.exp(-beta[c] * (end - own))).sum()
            )
            final.append(state[i, c] * np.exp(-beta[c] * end) + np.exp(-beta[c] * (end - own)).sum())
        total.append(value)
    return np.array(total), np.reshape(final, (len(lags), -1))


def test_what_mxnet_says():
    """Numbers of MXNet 1.9.1, which has these three gradients, of the likelihood alone."""
    a = case()
    for n in ("lda", "alpha", "beta"):
        a[n].attach_grad()
    with mx.autograd.record():
        y, s = mx.nd.contrib.hawkesll(**a)
    y.backward(mx.nd.array([1, 2]))
    close = dict(rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(y.asnumpy(), [-18.267414, -24.921177], **close)
    np.testing.assert_allclose(s.asnumpy(), [[0.019884, 0.011282], [0.036161, 0.001342]], **close)
    np.testing.assert_allclose(a["lda"].grad.asnumpy(), [[-4.55581, -4.34866], [-10.95911, -10.43316]], **close)
    np.testing.assert_allclose(a["alpha"].grad.asnumpy(), [-4.33291, -5.79528], **close)
    np.testing.assert_allclose(a["beta"].grad.asnumpy(), [-0.11873, -0.04805], **close)


@pytest.mark.parametrize("n, length, marks", [(1, 1, 1), (5, 7, 3), (3, 0, 2), (70, 90, 4)])
def test_definition(n, length, marks):
    rs = np.random.RandomState(n)
    host = [
        rs.rand(n, marks) + 0.5,
        rs.rand(marks) * 0.5,
        rs.rand(marks) + 0.5,
        rs.rand(n, marks),
        rs.rand(n, length) + 0.1,
        rs.randint(0, marks, (n, length)).astype("int32"),
        rs.randint(0, length + 1, n).astype("d"),
        np.full(n, 1.2 * length + 1),
    ]
    got = mx.nd.contrib.hawkesll(*[mx.nd.array(a, dtype="int32" if a.dtype == np.int32 else "float64") for a in host])
    for a, want in zip(got, by_definition(*host)):
        np.testing.assert_allclose(a.asnumpy(), want, rtol=1e-9, atol=1e-12)


def test_gradients():
    a = {n: x.asnumpy() for n, x in case("float64").items()}
    fixed = {n: mx.nd.array(a[n], dtype=t) for n, t in (("marks", "int32"), ("valid_length", "float64"))}
    free = [n for n in NAMES if n not in fixed]

    def call(*xs):
        return mx.nd.contrib.hawkesll(**dict(zip(free, xs)), **fixed)

    check_grads(lambda *xs: call(*xs)[0], [a[n] for n in free])
    check_grads(lambda *xs: call(*xs)[1], [a[n] for n in free])
    check_grads(call, [a[n] for n in free])


@pytest.mark.parametrize(
    "change, words",
    [
        ({"lda": mx.nd.ones((3, 2))}, r"lda must be \(2, 2\).*got \(3, 2\)"),
        ({"alpha": mx.nd.ones((3,))}, r"got"),
        ({"lags": mx.nd.ones((3,))}, r"lags must be \(N, T\), got \(3,\)"),
        ({"marks": mx.nd.ones((2, 3))}, "marks must be int32, got float32"),
        ({"marks": mx.nd.ones((2, 2), dtype="int32")}, r"marks must be \(2, 3\)"),
        ({"max_time": mx.nd.ones((1,))}, r"max_time must be \(2,\)"),
        *[
            ({"valid_length": mx.nd.array([3, n])}, f"valid_length holds {n}.*; a length must lie between 0 and 3")
            for n in (9, -1, float("nan"))
        ],
        *[
            (
                {"marks": mx.nd.array([[0, m, 1], [0, 0, 0]], dtype="int32")},
                f"marks holds {m}; a mark must lie between 0 and 1",
            )
            for m in (7, -1)
        ],
        ({"valid_length": mx.nd.ones((2, 1))}, r"valid_length must be \(2,\)"),
        ({"state": mx.nd.ones((2, 3))}, r"state must be \(2, 2\)"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(mx.MXNetError, match=words):
        mx.nd.contrib.hawkesll(**{**case(), **change})


def test_marks_behind_the_end_are_not_read():
    marks, lengths = np.array([[0, 1, -1], [1, 9, 9]], np.int32), mx.nd.array([2, 1])
    got = mx.nd.contrib.hawkesll(**{**case(), "marks": mx.nd.array(marks, dtype="int32"), "valid_length": lengths})
    want = mx.nd.contrib.hawkesll(
        **{**case(), "marks": mx.nd.array(marks.clip(0, 1), dtype="int32"), "valid_length": lengths}
    )
    for a, b in zip(got, want):
        assert np.array_equal(a.asnumpy(), b.asnumpy())


def test_the_graph_fills_in_shapes():
    s = mx.sym.contrib.hawkesll(*map(mx.sym.var, NAMES))
    assert s.list_outputs()[0].endswith("output0") or len(s) == 2
    shapes = dict(zip(NAMES, [(2, 2), (2,), (2,), (2, 2), (2, 3), (2, 3), (2,), (2,)]))
    assert s.infer_shape(**shapes)[1] == [(2,), (2, 2)]


@pytest.mark.parametrize(
    "dtype, want", [("float32", [7.75, 0.75, 1.5, 15.75]), ("int32", [3, 0, 1, 9]), ("uint8", [3, 255, 1, 9])]
)
def test_quadratic(dtype, want):
    """Integers are cut off towards zero, and wrap around."""
    x = mx.nd.array([-2.5, -1.5, 0, 1.5], dtype="float32" if dtype == "float32" else "int32").astype(dtype)
    assert mx.nd.contrib.quadratic(x, a=3, b=5, c=1.5).asnumpy().tolist() == want


def test_quadratic_gradients():
    check_grads(lambda x: mx.nd.contrib.quadratic(x, a=3, b=-5, c=1), [[-1.0, 0.5, 2.0]], order=2)
    y = mx.nd.contrib.backward_quadratic(mx.nd.array([1, 2]), mx.nd.array([3, 4]), a=3, b=5)
    assert y.asnumpy().tolist() == [23, 58]
    with pytest.raises(TypeError, match="quadratic: parameter 'a' must be float"):
        mx.nd.contrib.quadratic(mx.nd.ones((1,)), a="x")
