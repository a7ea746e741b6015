"""Arguments of the wrong kind: each is told by name, before any work begins."""

import numpy as np
import pytest

import mxcore as mx

from .conftest import bound, mlp, some_batch

DATA, LABEL = [("data", (4, 5))], [("softmax_label", (4,))]


def fit(**kwargs):
    rs = np.random.RandomState(0)
    mx.mod.Module(mlp()).fit(
        **{"train_data": mx.io.NDArrayIter(rs.rand(8, 5), np.zeros(8), 4), "num_epoch": 1, **kwargs}
    )


def initialised(**kwargs):
    mod = mx.mod.Module(mlp())
    mod.bind(DATA, LABEL)
    mod.init_params(**kwargs)


#: What is called, and what its TypeError says.
WRONG = {
    "symbol": (lambda: mx.mod.Module("net.json"), "takes a Symbol, got str"),
    "one name": (
        lambda: mx.mod.Module(mlp(), label_names="softmax_label"),
        r"label_names must be .* write \['softmax_label'\]",
    ),
    "names": (lambda: mx.mod.Module(mlp(), data_names=3), "data_names must be a list of names, got 3"),
    "fixed": (lambda: mx.mod.Module(mlp(), fixed_param_names="fc1_weight"), "fixed_param_names must be"),
    "context": (lambda: mx.mod.Module(mlp(), context=0), r"context must be a Context such as mx.cpu\(\)"),
    "no context": (lambda: mx.mod.Module(mlp(), context=[]), "context must be"),
    "work load": (lambda: mx.mod.Module(mlp(), work_load_list=[0]), "work_load_list must be .* above 0"),
    "groups": (lambda: bound(group2ctxs={"a": 3}), r"group2ctxs\['a'\] must be a Context"),
    "compression": (lambda: mx.mod.Module(mlp(), compression_params=3), "compression_params must be a dict"),
    "float shape": (lambda: mx.mod.Module(mlp()).bind([("data", (4.5, 5))], LABEL), "data_shapes must be a list"),
    "word shape": (lambda: mx.mod.Module(mlp()).bind([("data", "45")], LABEL), "data_shapes must be a list"),
    "initializer name": (
        lambda: initialised(initializer="xavier"),
        r"initializer must be an Initializer such as .*'xavier'",
    ),
    "initializer class": (lambda: initialised(initializer=mx.init.Xavier), "initializer must be an Initializer"),
    "file of parameters": (
        lambda: initialised(arg_params="net.params"),
        "arg_params must be a dict .* got str; mx.model.load_params",
    ),
    "list of parameters": (lambda: initialised(aux_params=[]), "aux_params must be a dict"),
    "numbers": (lambda: initialised(arg_params={"fc1_bias": 3}, allow_missing=True), "got int for 'fc1_bias'"),
    "optimizer_params": (
        lambda: bound().init_optimizer(optimizer_params="lr"),
        "optimizer_params must be a dict or a list",
    ),
    "batch": (
        lambda: bound().forward(mx.nd.ones((4, 5))),
        r"takes a DataBatch, got NDArray; write mx.io.DataBatch\(\[data\]",
    ),
    "batches": (lambda: bound().forward([3]), "takes a DataBatch, got int"),
    "out_grads": (lambda: bound(inputs_need_grad=True).backward("x"), "out_grads must be an NDArray"),
    "metric": (
        lambda: bound().update_metric("acc", some_batch().label),
        "takes an EvalMetric, got 'acc'; mx.metric.create",
    ),
    "labels": (
        lambda: bound().update_metric(mx.metric.Accuracy(), some_batch().label[0]),
        r"labels must be a list .* write \[label\]",
    ),
    "monitor": (lambda: bound().install_monitor(3), "takes a Monitor, got 3"),
    "borrow": (lambda: bound().borrow_optimizer(3), "takes a Module, got int"),
    "epoch": (
        lambda: bound().save_checkpoint("p", "best"),
        "epoch of checkpoint 'p' must be a whole number, got 'best'",
    ),
    "half an epoch": (lambda: mx.model.load_params("p", 1.5), "must be a whole number, got 1.5"),
    "train array": (
        lambda: fit(train_data=np.ones((4, 5))),
        "train_data must be a DataIter, got ndarray, .* mx.io.NDArrayIter",
    ),
    "eval pair": (lambda: fit(eval_data=(1, 2)), "eval_data must be a DataIter, got tuple"),
    "callback": (
        lambda: fit(batch_end_callback=[print, 3]),
        "batch_end_callback must be a callable or a list of them, got 3",
    ),
    "epoch callback": (lambda: fit(epoch_end_callback="net"), "epoch_end_callback must be"),
    "eval callbacks": (lambda: fit(eval_end_callback=3), "eval_end_callback must be"),
    "num_epoch": (lambda: fit(num_epoch="2"), "must be whole numbers, got 0 and '2'"),
    "begin_epoch": (lambda: fit(begin_epoch=None), "must be whole numbers"),
    "score array": (lambda: bound().score(np.ones((4, 5)), "acc"), "eval_data must be a DataIter"),
    "score callback": (
        lambda: bound().score(mx.io.NDArrayIter(np.ones((4, 5)), np.ones(4), 4), "acc", score_end_callback=3),
        "score_end_callback must be",
    ),
    "iter_predict": (lambda: next(bound().iter_predict(3)), "eval_data must be a DataIter, got int"),
    "sym_gen": (lambda: mx.mod.BucketingModule(mlp(), default_bucket_key=3), "sym_gen must be a function"),
    "chain": (lambda: mx.mod.SequentialModule().add(mlp()), "takes a module, got Symbol"),
    "parameters to save": (lambda: mx.model.save_checkpoint("p", 1, None, None, {}), "arg_params must be a dict"),
    "symbol to save": (lambda: mx.model.save_checkpoint("p", 1, "net", {}, {}), "symbol must be a Symbol"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_kinds(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, word = WRONG[case]
    with pytest.raises(TypeError, match=word) as caught:
        call()
    assert isinstance(caught.value, mx.base.MXNetError)
    assert not list(tmp_path.iterdir())


def test_a_wrong_callback_costs_no_epoch():
    seen = []
    with pytest.raises(TypeError, match="eval_batch_end_callback"):
        fit(batch_end_callback=seen.append, eval_batch_end_callback=3)
    assert seen == []


def test_parameters_without_initializer_must_be_given():
    mod = mx.mod.Module(mlp())
    mod.bind(DATA, LABEL)
    with pytest.raises(RuntimeError, match="missing: fc1_weight"):
        mod.init_params(None)
    with pytest.raises(AssertionError, match="init_params"):
        mod.get_params()
    net = mx.sym.SoftmaxOutput(mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn"), name="softmax")
    mod = mx.mod.Module(net)
    mod.bind(DATA, LABEL)
    mod.init_params()
    with pytest.raises(RuntimeError, match="aux_params.*\n.*missing: bn_moving_mean"):
        mod.set_params(mod.get_params()[0], None)
