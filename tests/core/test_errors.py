"""Errors: their types, and what they say about inputs that are not what was expected."""

import contextlib
import gc
import pickle
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import mxcore as mx
from mxcore import nd
from mxcore._core.errors import describe
from mxcore.base import MXNetError, error


@pytest.mark.parametrize(
    "kind",
    [ValueError, TypeError, KeyError, OSError, FileNotFoundError, NotImplementedError, RuntimeError, MemoryError],
)
def test_an_error_is_a_runtime_error_too_as_in_mxnet(kind):
    e = error(kind, "text")
    assert (
        issubclass(MXNetError, RuntimeError)
        and isinstance(e, (MXNetError, RuntimeError))
        and isinstance(e, kind)
        and str(e) == "text"
    )
    again = pickle.loads(pickle.dumps(e))
    assert type(again) is type(e) and str(again) == "text"
    with pytest.raises(RuntimeError):
        nd.ones((2,)).reshape((3,))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: nd.FullyConnected(x, np.ones((2, 3)), no_bias=True, num_hidden=2), "'weight'"),
        (lambda x: nd.FullyConnected(x, weight=np.ones((2, 3)), no_bias=True, num_hidden=2), "'weight'"),
        (lambda x: nd.exp(np.ones(2)), "'data'"),
        (lambda x: nd.concat(x, np.ones((2, 3)), dim=0), "'data'"),
        (lambda x: nd.elemwise_add(x, np.ones((2, 3))), "'rhs'"),
    ],
)
def test_a_numpy_array_where_an_array_is_expected(call, name):
    with pytest.raises(TypeError, match=f"input {name} must be an array: an NDArray .* got numpy.ndarray"):
        call(nd.ones((2, 3)))


def test_a_list_where_an_array_is_expected():
    with pytest.raises(TypeError, match=r"exp: input 'data' must be an array: .* got list"):
        nd.exp([1, 2])


def test_which_input_does_not_fit_and_what_was_expected():
    with pytest.raises(
        ValueError, match=r"operator Convolution: weight is \(4, 3, 3, 3\) where \(4, 4, 3, 3\) is expected"
    ):
        nd.Convolution(nd.ones((1, 4, 8, 8)), nd.ones((4, 3, 3, 3)), no_bias=True, kernel=(3, 3), num_filter=4)
    with pytest.raises(
        TypeError, match="inconsistent dtypes: .*float32.*float64|inconsistent dtypes: .*float64.*float32"
    ):
        nd.dot(nd.ones((2, 2)), nd.ones((2, 2), dtype="float64"))


@pytest.mark.parametrize("shape", [(2.5,), "ab", None, [1, "x"]])
def test_what_is_no_shape(shape):
    with pytest.raises(TypeError, match="operator _zeros: parameter 'shape' must be a? ?tuple of ints"):
        nd.zeros(shape)


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        mx.nonsense  # noqa: B018


def test_small_names_of_mxnet():
    from mxcore import base
    from mxcore.ndarray import ndarray as module

    assert (
        isinstance("x", base.string_types)
        and isinstance(np.int64(1), base.integer_types)
        and isinstance(np.float32(1), base.numeric_types)
    )
    assert base.mx_real_t is np.float32 and base._as_list(1) == [1] and base._as_list([1]) == [1]
    assert module._DTYPE_NP_TO_MX[np.float16] == 2 and module._DTYPE_MX_TO_NP[6] is np.int64
    assert mx.is_np_shape() is False


@pytest.mark.parametrize(
    "arguments", [([],), ({"a": 1},), (None,), ("cpu", []), ("cpu", float("inf")), ("cpu", "one")], ids=repr
)
def test_what_is_no_context(arguments):
    with pytest.raises(MXNetError, match="Context: device_(type|id) must be"):
        mx.Context(*arguments)


def test_of_very_many_inputs_the_first_are_told():
    specs = [SimpleNamespace(dtype="float32", shape=(i,)) for i in range(23)]
    told = describe([f"a{i}" for i in range(23)], specs)
    assert told.startswith("a0 float32 (0,), a1 float32 (1,), ") and told.endswith("a19 float32 (19,), and 3 others")
    told = describe(["a"] * 20, specs[:20])
    assert told.count("a float32") == 20 and "others" not in told


def hybridised(record):
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize()
    with mx.autograd.record() if record else contextlib.nullcontext():
        net(mx.nd.ones((2, 4)))


def module():
    net = mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), label_names=())
    net.bind([("data", (2, 3))])
    net.init_params()
    net.forward(mx.io.DataBatch([mx.nd.ones((2, 4, 5))]))


FAILING = {
    "operator": lambda folder: mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3))),
    "no graph": lambda folder: mx.nd.ones(1).backward(),
    "block": lambda folder: hybridised(False),
    "block, recorded": lambda folder: hybridised(True),
    "module": lambda folder: module(),
    "executor": lambda folder: mx.sym.Variable("x").bind(mx.cpu(), {}),
    "optimizer": lambda folder: mx.optimizer.create("missing"),
    "arrays": lambda folder: mx.nd.load(f"{folder}/missing/a.params"),
    "damaged arrays": lambda folder: mx.nd.load(f"{folder}/damaged"),
    "arrays of a store": lambda folder: mx.nd.load("memory://errors/nothing"),
    "graph": lambda folder: mx.sym.load(f"{folder}/damaged"),
    "records": lambda folder: mx.recordio.MXRecordIO(f"{folder}/missing.rec", "r"),
    "rows": lambda folder: mx.io.CSVIter(data_csv=f"{folder}/damaged", data_shape=(1,), batch_size=1),
    "pictures": lambda folder: mx.io.ImageRecordIter(path_imgrec=f"{folder}/a.rec", data_shape=(3, 2, 2), batch_size=1),
    "checkpoint": lambda folder: mx.model.load_checkpoint(f"{folder}/a", 1),
    "parameters": lambda folder: mx.gluon.nn.Dense(2).load_parameters(f"{folder}/damaged"),
}


@pytest.mark.parametrize("what", FAILING)
def test_an_error_that_is_over_holds_nothing_of_its_callers(tmp_path, what):
    """Their arrays go at once, and wait for no collector."""
    (tmp_path / "damaged").write_bytes(b"what is this?" * 9)

    class Mine:
        """What a caller has."""

    def fails():
        mine = Mine()
        seen.append(weakref.ref(mine))
        FAILING[what](tmp_path)

    seen = []
    gc.collect()
    gc.disable()
    try:
        try:
            fails()
        except MXNetError as e:
            assert e.__cause__ is not e
        else:
            pytest.fail("it is no error")
        assert seen[0]() is None
    finally:
        gc.enable()
