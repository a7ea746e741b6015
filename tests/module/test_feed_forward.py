"""FeedForward and the executor manager below it."""

import pickle
import warnings

import numpy as np
import pytest

import mxcore as mx

from .conftest import mlp
from .test_bucketing import Lengths, sym_gen


def line():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    return mx.sym.LinearRegressionOutput(net, mx.sym.Variable("softmax_label"), name="lin")


def model(symbol=None, **kwargs):
    with pytest.warns(DeprecationWarning, match="FeedForward has been deprecated"):
        return mx.model.FeedForward(
            line() if symbol is None else symbol, **{"num_epoch": 20, "numpy_batch_size": 10, **kwargs}
        )


X = np.linspace(-1, 1, 40)
Y = 3 * X + 1


@pytest.mark.parametrize(
    "x, y",
    [
        (X, Y),
        (X.reshape(-1, 1), Y),
        (X.reshape(-1, 1), Y.reshape(-1, 1)),
        (mx.nd.array(X.reshape(-1, 1)), mx.nd.array(Y)),
    ],
    ids=["vectors", "matrix", "column", "NDArray"],
)
@pytest.mark.parametrize("contexts", [1, 2])
def test_fit_and_predict_numbers(x, y, contexts):
    m = model(ctx=[mx.cpu(i) for i in range(contexts)], learning_rate=0.3)
    m.fit(x, y, eval_metric="mse")
    found = m.predict(x)
    assert isinstance(found, np.ndarray) and found.shape == (40, 1)
    np.testing.assert_allclose(found.ravel(), Y, atol=0.05)
    np.testing.assert_allclose(
        [m.arg_params["fc_weight"].asscalar(), m.arg_params["fc_bias"].asscalar()], [3, 1], atol=0.05
    )


def test_fit_follows_mxnet():
    # Ten steps by hand: the arithmetic of SGD on a fixed order.
    x, y = X.reshape(-1, 1).astype("float32"), Y.astype("float32")
    m = model(num_epoch=2, learning_rate=0.2, arg_params={"fc_weight": mx.nd.ones((1, 1)), "fc_bias": mx.nd.zeros(1)})
    m.fit(mx.io.NDArrayIter(x, y, 8), eval_metric="mse")
    w, b = 1.0, 0.0
    for _ in range(2):
        for i in range(0, 40, 8):
            d = w * x[i : i + 8, 0] + b - y[i : i + 8]
            w, b = w - 0.2 * (d * x[i : i + 8, 0]).mean(), b - 0.2 * d.mean()
    np.testing.assert_allclose(
        [m.arg_params["fc_weight"].asscalar(), m.arg_params["fc_bias"].asscalar()], [w, b], rtol=1e-4
    )


def test_callbacks_and_evaluation(data_iter):
    told = []
    m = model(mlp(), num_epoch=2, learning_rate=0.1)
    m.fit(
        data_iter,
        eval_data=data_iter,
        batch_end_callback=lambda p: told.append((type(p).__name__, p.epoch, p.nbatch)),
        epoch_end_callback=[lambda e, s, a, x: told.append((e, s is m.symbol, sorted(a), x))],
        eval_end_callback=lambda p: told.append(("end", p.nbatch)),
        eval_batch_end_callback=lambda p: told.append(("eval", p.nbatch)),
    )
    names = ["fc1_bias", "fc1_weight", "fc2_bias", "fc2_weight"]
    assert told == [
        row
        for e in (0, 1)
        for row in [
            *(("BatchEndParams", e, n) for n in (1, 2, 3)),
            (e, True, names, {}),
            *(("eval", n) for n in (0, 1, 2)),
            ("end", 3),
        ]
    ]
    seen = []
    assert 0 <= m.score(data_iter, batch_end_callback=lambda p: seen.append(p.nbatch), num_batch=2) <= 1 and seen == [
        0,
        1,
    ]


def test_epoch_size():
    told = []
    m = model(num_epoch=2, epoch_size=5, numpy_batch_size=20)
    m.fit(X, Y, eval_metric="mse", batch_end_callback=lambda p: told.append((p.epoch, p.nbatch)))
    assert told == [(e, n) for e in (0, 1) for n in (1, 2, 3, 4, 5)]


def test_evaluation_data_in_all_forms(data_iter):
    x, y = np.zeros((12, 5)), np.zeros(12)
    for given in (data_iter, (data_iter, None), (x, y), (x.tolist(), y.tolist())):
        ends = []
        model(mlp(), num_epoch=1, numpy_batch_size=4).fit(x, y, eval_data=given, eval_end_callback=ends.append)
        assert len(ends) == 1
    m = model(mlp(), num_epoch=1)
    with pytest.raises(TypeError, match="Eval data must be"):
        m.fit(x, y, eval_data=3)
    with pytest.raises(ValueError, match="NONE"):
        m.fit(x, y, eval_data=(None, None))


def test_bad_input_is_told():
    m = model()
    for args, kind, word in (
        ((X,), ValueError, "y must be specified"),
        ((X, Y[:-1]), ValueError, "X has 40, y 39"),
        ((X, np.zeros((40, 2))), ValueError, "1D or 2D"),
        (([1, 2],), TypeError, "not list"),
    ):
        with pytest.raises(kind, match=word):
            m.fit(*args)
    with pytest.raises(RuntimeError, match=r"call fit\(\)"):
        m.predict(X)
    with pytest.raises(ValueError, match="num_epoch"):
        model(num_epoch=None).fit(X, Y)
    with pytest.raises(TypeError, match="symbol must be"):
        model(3)
    with pytest.raises(TypeError, match="optimizer must be"):
        model(optimizer=3).fit(X, Y)
    with pytest.raises(ValueError, match=r"fc_weight has shape \(2, 2\), the network needs \(1, 1\)"):
        model(arg_params={"fc_weight": mx.nd.ones((2, 2))}).fit(X, Y)
    twice = mx.sym.Variable("data") + mx.sym.Variable("data")
    with pytest.raises(ValueError, match="named 'data'"):
        model(twice)


def test_extra_parameters():
    given = {"fc_weight": mx.nd.ones((1, 1)), "fc_bias": mx.nd.zeros(1), "other": mx.nd.ones(2)}
    assert set(model(arg_params=given, allow_extra_params=True).arg_params) == {"fc_weight", "fc_bias"}
    m = model(arg_params=given, num_epoch=1)
    m.fit(X, Y, eval_metric="mse")
    assert set(m.arg_params) == {"fc_weight", "fc_bias"}
    with pytest.raises(ValueError, match="other"):
        model(arg_params=given).predict(X)
    assert model(arg_params=given, allow_extra_params=True).predict(X).shape == (40, 1)


def test_callbacks_see_the_variables_of_the_loop(data_iter):
    seen = {}

    def note(where):
        return lambda param: seen.setdefault(where, dict(param.locals))

    m = model(mlp(), num_epoch=3, begin_epoch=1)
    m.fit(
        data_iter,
        eval_data=data_iter,
        batch_end_callback=note("batch"),
        eval_batch_end_callback=note("eval"),
        eval_end_callback=note("end"),
    )
    for found in seen.values():
        assert found["symbol"] is m.symbol and (found["begin_epoch"], found["end_epoch"], found["epoch"]) == (1, 3, 1)
        assert {"arg_params", "aux_params", "train_data", "executor_manager", "updater", "sym_gen"} <= found.keys()
    assert "eval_batch" in seen["eval"] and seen["end"]["total_num_batch"] == 3


def test_files(tmp_path):
    m = model(learning_rate=0.3)
    m.fit(X, Y, eval_metric="mse")
    m.save(str(tmp_path / "m"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m-0020.params", "m-symbol.json"]
    with pytest.warns(DeprecationWarning):
        again = mx.model.FeedForward.load(str(tmp_path / "m"), 20, num_epoch=21)
    assert again.begin_epoch == 20
    assert (again.predict(X) == m.predict(X)).all()
    assert (pickle.loads(pickle.dumps(again)).predict(X) == m.predict(X)).all()
    with pytest.raises(AssertionError, match="epoch"):
        model(num_epoch=None).save("x")


def test_create():
    with pytest.warns(DeprecationWarning):
        m = mx.model.FeedForward.create(
            line(), X, Y, num_epoch=20, learning_rate=0.3, numpy_batch_size=10, eval_metric="mse"
        )
    np.testing.assert_allclose(m.predict(X).ravel(), Y, atol=0.05)


def test_predict_returns_data_and_other_sizes(data_iter):
    m = model(mlp(), num_epoch=1)
    m.fit(data_iter)
    out, data, label = m.predict(data_iter, return_data=True)
    assert out.shape == (12, 3) and data.shape == (12, 5) and label.shape == (12,)
    assert m.predict(np.zeros((7, 5))).shape == (7, 3) and m.predict(data_iter, num_batch=1).shape == (4, 3)
    with pytest.raises(ValueError, match="no batch"):
        m.predict(data_iter, num_batch=0)


def test_parameters_as_scikit_learn_has_them():
    m = model()
    assert m.get_params()["num_epoch"] == 20 and m.set_params(num_epoch=3) is m and m.num_epoch == 3
    with pytest.raises(ValueError, match="no parameter 'depth'"):
        m.set_params(depth=1)


def test_optimizer_objects_and_arguments():
    m = model(optimizer=mx.optimizer.Adam(learning_rate=0.3, rescale_grad=0.1))
    m.fit(X, Y, eval_metric="mse")
    np.testing.assert_allclose(m.predict(X).ravel(), Y, atol=0.3)


def test_buckets():
    m = model(
        lambda key: sym_gen(key)[0], num_epoch=20, optimizer="adam", learning_rate=0.05, initializer=mx.init.Xavier()
    )
    seen = []
    m.fit(Lengths([6, 3, 4]), batch_end_callback=lambda p: seen.append(p.eval_metric.get()[1]))
    assert seen[-1] > 0.8


def test_names_that_others_define():
    assert mx.model.DataDesc is mx.io.DataDesc and mx.model.Context is mx.Context
    assert mx.model.BatchEndParam._fields == ("epoch", "nbatch", "eval_metric", "locals")
    with pytest.raises(AttributeError, match="nonsense"):
        mx.model.nonsense  # noqa: B018


def test_executor_manager(data_iter):
    net = mlp()
    names = net.list_arguments()
    params = [n for n in names if n not in ("data", "softmax_label")]
    ctx = [mx.cpu(0), mx.cpu(1)]
    manager = mx.executor_manager.DataParallelExecutorManager(net, ctx, data_iter, names, params, [])
    assert [[a.shape for a in arrays] for arrays in manager.param_arrays] == [
        [(4, 5)] * 2,
        [(4,)] * 2,
        [(3, 4)] * 2,
        [(3,)] * 2,
    ]
    with pytest.raises(RuntimeError, match="load_data_batch"):
        manager.forward()
    manager.set_params({n: mx.nd.ones(a[0].shape) for n, a in zip(params, manager.param_arrays)}, {})
    manager.load_data_batch(data_iter.next())
    manager.forward(is_train=True)
    manager.backward()
    assert len(manager.grad_arrays) == 4 and np.isfinite(manager.grad_arrays[0][1].asnumpy()).all()
    into = {n: mx.nd.zeros(a[0].shape) for n, a in zip(params, manager.param_arrays)}
    manager.copy_to(into, {})
    assert into["fc2_weight"].asnumpy().min() == 1 and manager.aux_arrays == []
    metric = mx.metric.Accuracy()
    data_iter.reset()
    manager.update_metric(metric, data_iter.next().label)
    assert metric.num_inst == 4
    with pytest.raises(AssertionError, match="2 contexts"):
        mx.executor_manager.DataParallelExecutorManager(net, ctx, data_iter, names, params, [], work_load_list=[1])


def test_deprecation_names_the_callers_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mx.model.FeedForward(line())
    assert caught[0].filename == __file__


def test_what_is_no_symbol_is_refused():
    with (
        pytest.warns(DeprecationWarning),
        pytest.raises(AssertionError, match="a Symbol or a function that makes one, got 3"),
    ):
        mx.model.FeedForward(3)
