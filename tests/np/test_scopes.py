"""What shapes and arrays mean: switches, scopes and decorators, per thread."""

import threading

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd, gluon, np, npx


def _both():
    return npx.is_np_shape(), npx.is_np_array()


def test_set_and_reset():
    assert _both() == (False, False)
    npx.set_np()
    assert _both() == (True, True)
    npx.reset_np()
    assert _both() == (False, False)
    npx.set_np(shape=True, array=False)
    assert _both() == (True, False)


def test_arrays_need_shapes():
    with pytest.raises(ValueError, match="shape=True"):
        npx.set_np(shape=False)
    npx.set_np()
    with pytest.raises(ValueError, match="reset_np"):
        mx.util.set_np_shape(False)
    assert _both() == (True, True)


def test_other_threads_are_not_touched():
    seen = []
    npx.set_np()
    thread = threading.Thread(target=lambda: seen.append(_both()))
    thread.start()
    thread.join()
    assert seen == [(False, False)]


def test_scopes_nest_and_end_where_something_fails():
    with mx.util.np_shape(), mx.util.np_array():
        assert _both() == (True, True)
        with mx.util.np_array(False), mx.util.np_shape(False):
            assert _both() == (False, False)
        assert _both() == (True, True)
    with pytest.raises(KeyError), mx.util.np_shape():
        raise KeyError
    assert _both() == (False, False)


def test_decorators_of_functions_and_classes():
    assert npx.use_np(_both)() == (True, True)
    assert npx.use_np_shape(_both)() == (True, False)
    assert mx.util.use_np_array(npx.use_np_shape(_both))() == (True, True)

    @npx.use_np
    class Both:
        def __init__(self):
            self.made = _both()

        def now(self):
            return _both()

        @property
        def seen(self):
            return _both()

        @staticmethod
        def static():
            return _both()

        @classmethod
        def of_class(cls):
            return cls, *_both()

    @npx.use_np
    class More(Both):
        pass

    for cls in (Both, More):
        assert cls().made == cls().now() == cls().seen == cls.static() == cls().static() == (True, True)
        assert cls.of_class() == (cls, True, True)
    assert _both() == (False, False)
    with pytest.raises(TypeError, match="functions and classes"):
        npx.use_np(3)


@npx.use_np
class _Layer(gluon.HybridBlock):
    """Decorated, it is of mx.np wherever it is called from: with parameters, children and graph."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.dense = gluon.nn.Dense(3)
            self.scale = self.params.get("scale", shape=(3,), init="ones")

    def hybrid_forward(self, F, x, scale):
        return F.np.sum(F.npx.relu(self.dense(x)) * scale, axis=-1)


class _Exp(npx.use_np(type("Base", (gluon.HybridBlock,), {}))):
    def forward(self, x):
        return np.exp(x) * (x.shape[0] or 1)


def test_decorated_blocks_need_no_switch():
    x = mx.nd.ones((2, 4)).as_np_ndarray()
    for hybrid in (False, True):
        net = _Layer()
        net.initialize(mx.init.One())
        net.hybridize(hybrid)
        for _ in range(2):
            with autograd.record():
                y = net(x)
            y.backward()
        assert type(y) is type(net.scale.data()) is type(net.scale.grad()) is np.ndarray
        onp.testing.assert_allclose(y.asnumpy(), [12, 12])
        assert _both() == (False, False)
    net = _Exp()
    net.hybridize()
    with mx.util.np_shape(), mx.util.np_array():
        onp.testing.assert_allclose(net(x).asnumpy(), onp.full((2, 4), 2 * onp.e), rtol=1e-6)
    assert net._noted  # as a graph


def test_dtypes_of_new_arrays():
    def made():
        return [
            *(np.array([1, 2]), np.array([1.5]), np.array([True]), np.array(onp.float32([1])), np.arange(3)),
            *(np.arange(0.5, 3), np.full((2,), 3), np.full((2,), 3.0), np.zeros(2), np.ones(2), np.eye(2)),
            *(np.linspace(0, 1, 3), np.hanning(3), np.random.normal(size=2), np.random.uniform(), np.zeros_like(x)),
            *(np.random.beta(1, 1), np.tri(2), np.identity(2), np.empty(2), np.zeros(2, dtype="int8")),
        ]

    x = np.zeros(2, dtype="float16")
    npx.set_np(dtype=True)
    assert mx.util.is_np_default_dtype()
    whole, real = onp.dtype("int64"), onp.dtype("float64")
    assert [v.dtype for v in made()] == [
        *(whole, real, onp.dtype(bool), onp.dtype("float32"), whole, real, whole, real, real, real, real),
        *(real, real, real, real, onp.dtype("float16"), real, real, real, real, onp.dtype("int8")),
    ]
    npx.set_np()
    assert not mx.util.is_np_default_dtype()
    assert {v.dtype.name for v in made()} == {"float32", "float16", "int8"}
    npx.set_np(dtype=True)
    npx.reset_np()
    assert not mx.util.is_np_default_dtype()
