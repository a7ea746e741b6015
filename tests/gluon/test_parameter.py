"""Parameters, their dicts and constants."""

import copy
import pickle
import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore.cli.model import load_params
from mxcore.gluon import Constant, DeferredInitializationError, Parameter, ParameterDict

CPUS = [mx.cpu(0), mx.cpu(1)]


def made(**kw):
    p = Parameter("w", **{"shape": (2, 3), **kw})
    p.initialize(mx.init.One())
    return p


def test_initialised_parameter():
    p = made()
    assert repr(p) == "Parameter w (shape=(2, 3), dtype=<class 'numpy.float32'>)"
    assert (p.data().asnumpy() == 1).all() and (p.grad().asnumpy() == 0).all()
    assert p.list_ctx() == [mx.cpu(0)] and p.list_data()[0] is p.data()
    assert repr(Parameter("h", shape=3, dtype="float16")) == "Parameter h (shape=(3,), dtype=float16)"


@pytest.mark.parametrize(
    "kw, words",
    [
        ({"grad_req": "sometimes"}, ["grad_req", "sometimes"]),
        ({"stype": "dense"}, ["stype", "'w'", "dense"]),
        ({"grad_stype": "dense"}, ["grad_stype", "'w'", "dense"]),
    ],
)
def test_bad_arguments(kw, words):
    with pytest.raises(AssertionError) as e:
        Parameter("w", **kw)
    assert isinstance(e.value, mx.base.MXNetError)
    assert all(w in str(e.value) for w in words)


@pytest.mark.parametrize("ctx", ["cpu", 5, [], ["cpu"]])
def test_contexts_are_contexts(ctx):
    for use in (Parameter("w", shape=(2,)).initialize, made().reset_ctx):
        with pytest.raises(TypeError, match="ctx must be a Context such as mx.cpu") as e:
            use(ctx=ctx)
        assert isinstance(e.value, mx.base.MXNetError) and repr(ctx) in str(e.value)


@pytest.mark.parametrize("method", ["data", "grad", "list_data", "list_grad", "list_ctx"])
def test_uninitialised(method):
    with pytest.raises(RuntimeError, match="Parameter 'w' has not been initialized"):
        getattr(Parameter("w", shape=(2,)), method)()


def test_unknown_shape_needs_leave_to_defer():
    for shape in (None, (0, 3)):
        with pytest.raises(ValueError, match="'w'.*invalid shape"):
            Parameter("w", shape=shape).initialize()


def test_deferred_initialisation():
    p = Parameter("w", shape=(2, 0), allow_deferred_init=True, init="ones")
    p.initialize(ctx=CPUS)
    assert p.list_ctx() == CPUS
    with pytest.raises(DeferredInitializationError, match="'w'.*deferred"):
        p.data()
    assert issubclass(DeferredInitializationError, mx.base.MXNetError)
    p.shape = (2, 3)
    p._finish_deferred_init()
    assert [d.context for d in p.list_data()] == CPUS
    assert all((d.asnumpy() == 1).all() for d in p.list_data())


def test_own_initializer_goes_before_the_default():
    p = Parameter("w_weight", shape=(2,), init="ones")
    p.initialize(default_init=mx.init.Zero())
    assert (p.data().asnumpy() == 1).all()
    p = Parameter("w_bias", shape=(2,))
    p.initialize(default_init=mx.init.Constant(3))
    assert (p.data().asnumpy() == 3).all()
    p.initialize(mx.init.Zero(), force_reinit=True)
    assert (p.data().asnumpy() == 0).all()


def test_second_initialisation_warns():
    p = made()
    with pytest.warns(UserWarning, match="'w' is already initialized"):
        p.initialize(mx.init.Zero())
    assert (p.data().asnumpy() == 1).all()


def test_shape_fills_in_unknown_dimensions_only():
    p = Parameter("w", shape=(2, 0, -1))
    p.shape = (2, 3, 4)
    assert p.shape == (2, 3, 4)
    for wrong in ((2, 3, 5), (2, 3), None):
        with pytest.raises(AssertionError, match="'w'.*incompatible"):
            p.shape = wrong


def test_contexts():
    p = Parameter("w", shape=(2,))
    p.initialize(mx.init.One(), ctx=CPUS)
    assert p.data(mx.cpu(1)).context == mx.cpu(1) and p.grad(mx.cpu(1)).context == mx.cpu(1)
    with mx.cpu(1):
        assert p.data().context == mx.cpu(1)
    with pytest.raises(RuntimeError, match=r"'w' was not initialized on context cpu\(2\).*cpu\(0\), cpu\(1\)"):
        p.data(mx.cpu(2))
    p.data(mx.cpu(0))[:] = 3
    p.reset_ctx(mx.cpu(2))
    # The mean of the copies moves on.
    assert p.list_ctx() == [mx.cpu(2)] and (p.data().asnumpy() == 2).all()
    with pytest.raises(ValueError, match="'v' because it has not been initialized"):
        Parameter("v").reset_ctx(mx.cpu())


def test_set_data():
    p = Parameter("w", shape=(2,))
    p.initialize(ctx=CPUS)
    p.set_data(np.array([3, 4]))
    assert all(d.asnumpy().tolist() == [3, 4] for d in p.list_data())
    with pytest.raises(AssertionError, match="incompatible"):
        p.set_data(mx.nd.ones((3,)))
    with pytest.raises(AssertionError, match="'v' has not been initialized"):
        Parameter("v", shape=(2,)).set_data(mx.nd.ones((2,)))
    late = Parameter("w", shape=(2, 0), allow_deferred_init=True)
    late.initialize()
    late.set_data(mx.nd.ones((2, 3)) * 5)
    assert late.shape == (2, 3) and (late.data().asnumpy() == 5).all()


def backward(p):
    with mx.autograd.record():
        y = (p.data() * 2).sum()
    y.backward()


def test_gradient_requests():
    p = made()
    backward(p)
    backward(p)
    assert (p.grad().asnumpy() == 2).all()
    p.grad_req = "add"
    backward(p)
    backward(p)
    assert (p.grad().asnumpy() == 4).all()
    p.zero_grad()
    assert (p.grad().asnumpy() == 0).all()
    p.grad_req = "null"
    for method in (p.grad, p.list_grad):
        with pytest.raises(RuntimeError, match="'w' because grad_req='null'"):
            method()
    p.zero_grad()
    p.grad_req = "write"
    backward(p)
    assert (p.grad().asnumpy() == 2).all()


def test_not_differentiable():
    p = made(differentiable=False)
    p.grad_req = "write"
    assert p.grad_req == "null"


def test_cast():
    p = made()
    p.cast("float64")
    assert p.dtype == "float64" and p.data().dtype == np.float64 and p.grad().dtype == np.float64
    backward(p)
    assert (p.grad().asnumpy() == 2).all()
    p.set_data(mx.nd.ones((2, 3)))
    assert p.data().dtype == np.float64


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("more", [{}, {"grad_stype": "row_sparse"}], ids=["dense", "row_sparse"])
def test_cast_keeps_what_gradients_are_added_up_to(dtype, more):
    p = made(**more)
    p.grad_req = "add"
    backward(p)
    p.cast(dtype)
    assert p.grad().dtype == np.dtype(dtype) and (p.grad().asnumpy() == 2).all()
    assert p.grad().stype == more.get("grad_stype", "default")
    backward(p)
    assert (p.grad().asnumpy() == 4).all()
    p.grad_req = "null"
    p.cast("float32")
    p.grad_req = "write"
    assert (p.grad().asnumpy() == 0).all()


@pytest.mark.parametrize("clone", [lambda p: pickle.loads(pickle.dumps(p)), copy.deepcopy])
def test_copies_learn_by_themselves(clone):
    p = made(lr_mult=3.0)
    q = clone(p)
    assert q.lr_mult == 3.0 and q.data().asnumpy().tolist() == p.data().asnumpy().tolist()
    backward(q)
    assert (q.grad().asnumpy() == 2).all() and (p.grad().asnumpy() == 0).all()


def test_symbol():
    v = Parameter("w", shape=(2, 0), lr_mult=2.0, init="zeros").var()
    attrs = v.attr_dict()["w"] if "w" in v.attr_dict() else v.list_attr()
    assert v.name == "w" and attrs["__shape__"] == "(2, 0)"
    assert attrs["__lr_mult__"] == "2.0" and attrs["__init__"] == "zeros"


# -- loading -------------------------------------------------------------------------------------------------


def test_load_into_uninitialised():
    p = Parameter("w", shape=(2, 0))
    p._load_init(mx.nd.ones((2, 3)), ctx=CPUS)
    assert p.shape == (2, 3) and p.list_ctx() == CPUS


def test_load_into_initialised_keeps_contexts():
    p = Parameter("w", shape=(2,))
    p.initialize(ctx=mx.cpu(1))
    p._load_init(mx.nd.ones((2,)), ctx=None)
    assert p.data().context == mx.cpu(1) and (p.data().asnumpy() == 1).all()
    with pytest.raises(AssertionError, match=r"'w'.* on \[cpu\(0\)\].*on \[cpu\(1\)\]"):
        p._load_init(mx.nd.ones((2,)), ctx=mx.cpu(0))


def test_load_checks_shape_and_dtype():
    with pytest.raises(AssertionError, match=r"'w'.*expected \(2, 3\) vs saved \(3, 3\)"):
        made()._load_init(mx.nd.ones((3, 3)), None)
    half = mx.nd.ones((2, 3), dtype="float16")
    with pytest.raises(AssertionError, match="'w'.*expected float32 vs saved float16.*cast_dtype"):
        made()._load_init(half, None)
    p = made()
    p._load_init(half, None, cast_dtype=True)
    assert p.data().dtype == np.float32
    p._load_init(half, None, cast_dtype=True, dtype_source="saved")
    assert p.data().dtype == np.float16
    with pytest.raises(AssertionError, match="dtype_source.*elsewhere"):
        p._load_init(half, None, cast_dtype=True, dtype_source="elsewhere")


# -- dicts ---------------------------------------------------------------------------------------------------


def test_get_makes_finds_and_merges():
    d = ParameterDict("net_")
    p = d.get("w", shape=(2, 0), allow_deferred_init=True)
    assert p.name == "net_w" and d["net_w"] is p and "net_w" in d and list(d) == ["net_w"]
    assert d.get("w", shape=(0, 3)) is p and p.shape == (2, 3)
    assert d.get("w", dtype="float32") is p
    for kw, text in (({"shape": (2, 4)}, r"\(2, 4\)"), ({"dtype": "float64"}, "float64"), ({"lr_mult": 2.0}, "2.0")):
        with pytest.raises(AssertionError, match=f"'net_w'.*'{next(iter(kw))}'.*{text}"):
            d.get("w", **kw)
    assert repr(d) == "net_ (\n  Parameter net_w (shape=(2, 3), dtype=<class 'numpy.float32'>)\n)"
    assert repr(ParameterDict()) == "(\n\n)"


def test_shared_dict():
    a = ParameterDict("net_")
    p = a.get("w", shape=(2,))
    b = ParameterDict("net_", shared=a)
    assert list(b) == [] and b.get("w") is p and list(b) == ["net_w"]


def test_constants():
    d = ParameterDict("net_")
    c = d.get_constant("c", [[1, 2]])
    assert repr(c) == "Constant net_c (shape=(1, 2), dtype=<class 'numpy.float32'>)"
    assert d.get_constant("c", np.array([[1, 2]])) is c and d.get_constant("c") is c
    with pytest.raises(AssertionError, match="'net_c'.*different value"):
        d.get_constant("c", [[1, 3]])
    with pytest.raises(KeyError, match="net_other"):
        d.get_constant("other")
    d.get("w", shape=(1,))
    with pytest.raises(AssertionError, match="'net_w'.*not a constant"):
        d.get_constant("w", [1])
    d.initialize()
    assert c.data().asnumpy().tolist() == [[1, 2]] and c.grad_req == "null"
    with pytest.warns(UserWarning, match="does not support grad_req"):
        c.grad_req = "write"
    with pytest.raises(RuntimeError, match="grad_req='null'"):
        c.grad()
    assert isinstance(pickle.loads(pickle.dumps(c)), Constant)


def test_update():
    a, b, c = ParameterDict("n_"), ParameterDict("n_"), ParameterDict("n_")
    p = a.get("w")
    b.update(a)
    b.update(a)
    assert b["n_w"] is p
    c.get("w")
    with pytest.raises(AssertionError, match="different Parameters with the same name 'n_w'"):
        b.update(c)


def test_dict_wide_settings():
    d = ParameterDict("n_")
    d.get("a", shape=(2,))
    d.get("b", shape=(2, 0), allow_deferred_init=True)
    d.initialize(mx.init.One(), ctx=CPUS)
    d.setattr("grad_req", "add")
    assert [p.grad_req for p in d.values()] == ["add", "add"]
    assert d.list_ctx() == CPUS
    d.reset_ctx(mx.cpu(1))
    assert [p.list_ctx() for p in d.values()] == [[mx.cpu(1)]] * 2
    backward(d["n_a"])
    d.zero_grad()
    assert (d["n_a"].grad().asnumpy() == 0).all()


def pair(prefix="n_", names=("a", "b")):
    d = ParameterDict(prefix)
    for i, n in enumerate(names):
        d.get(n, shape=(2,), init=mx.init.Constant(i + 1))
    d.initialize()
    return d


def test_save_and_load(tmp_path):
    f = str(tmp_path / "p.params")
    pair().save(f)
    assert sorted(mx.nd.load(f)) == ["n_a", "n_b"]
    d = ParameterDict("n_")
    d.get("a", shape=(0,), allow_deferred_init=True)
    d.get("b")
    d.load(f, ctx=CPUS)
    assert d["n_b"].list_ctx() == CPUS and (d["n_b"].data(mx.cpu(1)).asnumpy() == 2).all()
    pair().save(f, strip_prefix="n_")
    assert sorted(mx.nd.load(f)) == ["a", "b"]
    other = pair("m_")
    other.load(f, restore_prefix="m_")
    assert (other["m_b"].data().asnumpy() == 2).all()
    with pytest.raises(ValueError, match="'x_'.*'n_a' does not start"):
        pair().save(f, strip_prefix="x_")
    with pytest.raises(AssertionError, match="restore_prefix is 'x_'.*'n_a'"):
        pair().load(f, restore_prefix="x_")


def test_load_names_the_differences(tmp_path):
    f = str(tmp_path / "p.params")
    pair(names=("a", "b")).save(f)
    d = pair(names=("a", "c"))
    with pytest.raises(
        AssertionError, match=r"'n_c' is missing in file: .*p.params.*'n_a', 'n_b'.*Unknown here: 'n_b'"
    ):
        d.load(f)
    with pytest.raises(AssertionError, match="'n_b' loaded from.*ignore_extra"):
        d.load(f, allow_missing=True)
    d.load(f, allow_missing=True, ignore_extra=True)
    wrong = ParameterDict("n_")
    wrong.get("a", shape=(3,))
    wrong.get("b", shape=(4,))
    with pytest.raises(AssertionError) as e:
        wrong.load(f)
    for line in (
        "n_a: shape incompatible expected (3,) vs saved (2,)",
        "n_b: shape incompatible expected (4,) vs saved",
    ):
        assert line in str(e.value)
    mx.nd.save(f, [mx.nd.ones((2,))])
    with pytest.raises(ValueError, match="without names"):
        d.load(f)


def test_load_dict_takes_checkpoints():
    d = pair()
    d.load_dict({"arg:n_a": mx.nd.zeros((2,)), "aux:n_b": mx.nd.zeros((2,))})
    assert all((p.data().asnumpy() == 0).all() for p in d.values())


def test_no_dimensions_are_a_shape_under_np_shape_only():
    for value in (5, mx.nd.array(5)):
        with pytest.raises(ValueError, match=r"Cannot initialize Parameter 'c' because it has invalid shape: \(\)"):
            mx.gluon.Constant("c", value).initialize()
        with mx.util.np_shape():
            c = mx.gluon.Constant("c", value)
            c.initialize()
            assert c.data().shape == () and c.data().asscalar() == 5


@pytest.mark.parametrize("looks", [1, 2])
def test_a_parameter_that_another_thread_initialises_is_waiting_or_there(looks):
    """Never neither: between the looks at arrays and at what they wait for, the other thread may end the waiting."""

    class Looked(Parameter):
        left = None

        @property
        def _data(self):
            found = self.__dict__["arrays"]
            if self.left is not None:
                self.left -= 1
                if not self.left:
                    self.left, self.shape = None, (2,)
                    self._finish_deferred_init()
            return found

        @_data.setter
        def _data(self, arrays):
            self.__dict__["arrays"] = arrays

    p = Looked("w", shape=(0,), allow_deferred_init=True)
    p.initialize()
    p.left = looks
    try:
        assert p.data().shape == (2,)
    except DeferredInitializationError:
        assert looks == 2
    assert p.data().shape == (2,)


def test_a_parameter_that_is_initialised_again_has_its_old_value_until_then():
    p = mx.gluon.Parameter("w", shape=(2,))
    p.initialize(mx.init.One())
    seen = []

    class Looks(mx.init.Initializer):
        def _init_weight(self, name, arr):
            seen.append(p.data().asnumpy().tolist())
            arr[:] = 2

    p.initialize(Looks(), force_reinit=True)
    assert seen == [[1, 1]] and p.data().asnumpy().tolist() == [2, 2]


def test_two_arrays_for_one_parameter_are_refused(tmp_path):
    """Which one is meant nobody can tell; the order in the file must not decide."""
    graph, params = str(tmp_path / "q-symbol.json"), str(tmp_path / "q.params")
    mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, no_bias=True, name="f").save(graph)
    one = mx.nd.ones((1, 1))
    for names in (("arg:f_weight", "f_weight"), ("f_weight", "arg:f_weight"), ("arg:f_weight", "aux:f_weight")):
        mx.nd.save(params, {name: one * i for i, name in enumerate(names)})
        for load in (
            lambda: mx.gluon.SymbolBlock.imports(graph, ["data"], params),
            lambda: mx.init.Load(params),
            lambda: load_params(params),
        ):
            with pytest.raises(ValueError, match="more than one array is named 'f_weight'"):
                load()


def test_names_with_colons_stay_whole(tmp_path):
    params = str(tmp_path / "c.params")
    mx.nd.save(params, {"arg:a:w": mx.nd.ones(1), "arg:b:w": mx.nd.ones(1) * 2, "aux:x:m": mx.nd.ones(1)})
    args, aux = load_params(params)
    assert sorted(args) == ["a:w", "b:w"] and sorted(aux) == ["x:m"]


def test_the_symbol_stays_while_the_shape_does():
    p = made()
    symbol = p.var()
    p.set_data(mx.nd.zeros((2, 3)))
    p.shape = [2, 3]
    assert p.var() is symbol


def test_another_thread_drops_the_symbol_while_it_is_asked_for():
    class Dropping(Parameter):
        """A parameter whose symbol is dropped as soon as it is kept."""

        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "_var" and value is not None:
                thread = threading.Thread(target=self.cast, args=("float32",))
                thread.start()
                thread.join()

    p = made()
    p.__class__ = Dropping
    assert p.var().name == "w" and p._var is None
