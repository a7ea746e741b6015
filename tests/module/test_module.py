"""Module: states, parameters, shapes, gradients, sharing, checkpoints."""

import os
import re

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError, MXNetWarning

from .conftest import bound, mlp, params_of, some_batch

# -- what to call first --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda m: m.data_shapes, "bind"),
        (lambda m: m.forward(some_batch()), "bind"),
        (lambda m: m.init_params(), "bind"),
        (lambda m: m.init_optimizer(), "bind"),
        (lambda m: m.get_params(), "bind"),
        (lambda m: m.save_optimizer_states("x"), "bind"),
    ],
)
def test_unbound_modules_say_what_to_call(call, word):
    with pytest.raises(AssertionError, match=rf"Module\..*{word}\(\)"):
        call(mx.mod.Module(mlp()))


def test_steps_out_of_order_say_what_to_call():
    mod = bound()
    with pytest.raises(AssertionError, match=r"update: call init_optimizer\(\)"):
        mod.update()
    with pytest.raises(AssertionError, match="inputs_need_grad=True"):
        mod.get_input_grads()
    with pytest.raises(AssertionError, match="for_training=True"):
        bound(for_training=False, inputs_need_grad=True)
    mod = bound(for_training=False)
    mod.forward(some_batch())
    with pytest.raises(AssertionError, match="for_training=False"):
        mod.backward()


def test_calls_twice_are_ignored_and_said(caplog):
    mod = bound()
    mod.bind([("data", (9, 9))])
    assert "Already bound" in caplog.text and mod.data_shapes[0].shape == (4, 5)
    with pytest.warns(MXNetWarning, match="already initialized"):
        mod.init_params()
    mod.init_optimizer(optimizer_params={"learning_rate": 0.5})
    mod.init_optimizer(optimizer_params={"learning_rate": 0.7})
    assert "optimizer already initialized" in caplog.text and mod._optimizer.lr == 0.5


# -- names ---------------------------------------------------------------------------------------------------------


def test_wrong_names_are_told_with_the_right_ones():
    with pytest.raises(ValueError, match=r"'dta', did you mean 'data'\?.*\['data', 'softmax_label'\]"):
        mx.mod.Module(mlp(), data_names=["dta"])
    with pytest.raises(ValueError, match="fc1_weight"):
        mx.mod.Module(mlp(), fixed_param_names=["fc3_weight"])
    with pytest.raises(ValueError, match="state_names"):
        mx.mod.Module(mlp(), state_names=["s"])
    with pytest.warns(MXNetWarning, match=r"label_names=\['lbl'\].*softmax_label"):
        mx.mod.Module(mlp(), label_names=["lbl"])
    with pytest.raises(ValueError, match=r"describes \['img'\].*data_names=\['data'\]"):
        mx.mod.Module(mlp()).bind([("img", (4, 5))], [("softmax_label", (4,))])


def test_misnamed_and_missing_labels():
    mod = mx.mod.Module(mlp())
    with (
        pytest.warns(MXNetWarning, match=r"\['lbl'\]"),
        pytest.raises(ValueError, match=r"\['lbl'\].*\['data', 'softmax_label'\]"),
    ):
        mod.bind([("data", (4, 5))], [("lbl", (4,))])
    assert not mod.binded
    with pytest.warns(MXNetWarning, match="no label_shapes.*softmax_label"):
        mod.bind([("data", (4, 5))])
    mod = bound()
    with pytest.raises(ValueError, match=r"no labels.*\['softmax_label'\]"):
        mod.forward_backward(mx.io.DataBatch(some_batch().data))
    mod.forward(mx.io.DataBatch(some_batch().data))
    assert mod.get_outputs()[0].shape == (4, 3)
    with pytest.raises(ValueError, match="2 labels.*softmax_label"):
        mod.forward(mx.io.DataBatch(some_batch().data, some_batch().label * 2))
    with pytest.raises(ValueError, match="2 data arrays.*'data'"):
        mod.forward(mx.io.DataBatch(some_batch().data * 2, some_batch().label))


def test_descriptions():
    mod = bound()
    assert (
        mod.data_names == ["data"] and mod.label_names == ["softmax_label"] and mod.output_names == ["softmax_output"]
    )
    assert mod.output_shapes == [("softmax_output", (4, 3))]
    assert mod.data_shapes == [mx.io.DataDesc("data", (4, 5))] and mod.label_shapes[0].shape == (4,)
    assert mod.symbol.list_outputs() == ["softmax_output"]
    with pytest.raises(TypeError, match="list of DataDesc"):
        mx.mod.Module(mlp()).bind(3)


# -- parameters ----------------------------------------------------------------------------------------------------


def test_parameters_of_another_network_are_told_whole():
    mod = bound()
    before = params_of(mod)
    args = {
        "fc1_weight": mx.nd.ones((2, 2)),
        "other": mx.nd.ones(7),
        "fc2_weight": mx.nd.ones((3, 4)),
        "fc2_bias": mx.nd.ones(3),
    }
    with pytest.raises(ValueError) as e:
        mod.set_params(args, {})
    for part in (
        "fc1_weight has shape (2, 2), the network needs (4, 5)",
        "missing: fc1_bias (4,)",
        "not in the network: other (7,)",
    ):
        assert part in str(e.value)
    assert isinstance(e.value, MXNetError)
    after = params_of(mod)
    assert all((before[k] == after[k]).all() for k in before)


def test_missing_and_extra_parameters():
    mod = bound()
    args, auxs = mod.get_params()
    part = {"fc1_weight": mx.nd.ones((4, 5))}
    for call in (mod.set_params, lambda a, x: mod.init_params(arg_params=a, aux_params=x, force_init=True)):
        with pytest.raises(RuntimeError, match="allow_missing"):
            call(part, auxs)
    mod.init_params(mx.init.One(), arg_params=part, allow_missing=True, force_init=True)
    assert params_of(mod)["fc2_weight"].min() == 1 and params_of(mod)["fc2_bias"].max() == 0
    more = {**args, "other": mx.nd.ones(2)}
    mod.set_params(more, auxs)  # as in MXNet: whole checkpoints are welcome
    with pytest.raises(ValueError, match="other.*\n.*allow_extra"):
        mod.set_params(more, auxs, allow_missing=True)
    mod.set_params(
        {"fc2_bias": mx.nd.array([1, 2, 3]), "other": mx.nd.ones(2)}, {}, allow_missing=True, allow_extra=True
    )
    assert params_of(mod)["fc2_bias"].tolist() == [1, 2, 3]
    with pytest.warns(MXNetWarning, match="set_params"):
        mod.set_params(part, {}, allow_missing=True, force_init=False)


def test_initializers_load_and_mixed():
    saved = {"arg:fc1_weight": mx.nd.ones((4, 5)) * 7}
    mod = bound()
    mod.init_params(
        mx.init.Load(saved, default_init=mx.init.Mixed([".*bias", ".*"], [mx.init.Constant(2), mx.init.Constant(3)])),
        force_init=True,
    )
    found = params_of(mod)
    assert [found[n].ravel()[0] for n in ("fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias")] == [7, 0, 3, 0]


def test_variables_may_bring_their_initializer():
    net = mx.sym.FullyConnected(
        mx.sym.Variable("data"), weight=mx.sym.Variable("w", init=mx.init.Constant(5)), num_hidden=2, name="fc"
    )
    mod = mx.mod.Module(net, label_names=None)
    mod.bind([("data", (2, 3))])
    mod.init_params(mx.init.Zero())
    assert params_of(mod)["w"].min() == 5


def test_save_and_load_params(tmp_path):
    mod, other = bound(), bound(mlp(hidden=6))
    mod.save_params(str(tmp_path / "p"))
    again = bound()
    again.init_params(mx.init.Zero(), force_init=True)
    again.load_params(str(tmp_path / "p"))
    assert all((params_of(mod)[k] == v).all() for k, v in params_of(again).items())
    with pytest.raises(ValueError, match=r"fc1_weight has shape \(4, 5\), the network needs \(6, 5\)"):
        other.load_params(str(tmp_path / "p"))
    mx.nd.save(str(tmp_path / "q"), {"x": mx.nd.ones(1)})
    with pytest.raises(ValueError, match="neither 'arg:<name>' nor 'aux:<name>'"):
        mod.load_params(str(tmp_path / "q"))


# -- shapes that change --------------------------------------------------------------------------------------------


def test_batches_of_other_sizes():
    mod = bound()
    alone = {n: bound(size=n) for n in (2, 4, 9)}
    for n in (2, 9, 4, 9, 2):
        batch = some_batch(n, seed=n)
        for m in (mod, alone[n]):
            m.forward_backward(batch)
        assert (
            mod.data_shapes[0].shape == (n, 5)
            and mod.label_shapes[0].shape == (n,)
            and mod.output_shapes[0][1] == (n, 3)
        )
        np.testing.assert_allclose(mod.get_outputs()[0].asnumpy(), alone[n].get_outputs()[0].asnumpy(), rtol=1e-6)
        for a, b in zip(mod._exec_group.grad_arrays, alone[n]._exec_group.grad_arrays):
            np.testing.assert_allclose(a[0].asnumpy(), b[0].asnumpy(), rtol=1e-5, atol=1e-6)
    assert len(mod._exec_group._kept) == 3


def test_executors_of_earlier_shapes_are_dropped_in_time():
    mod = bound()
    for n in range(1, 30):
        mod.forward(some_batch(n), is_train=False)
    kept = mod._exec_group._kept
    assert len(kept) == 16 and mod._exec_group._default_execs in kept.values()


def test_batches_without_labels_do_not_lose_them():
    mod = bound()
    assert mod.predict(np.ones((2, 5))).shape == (2, 3) and mod.label_shapes is None
    mod.forward_backward(some_batch(2))
    assert mod.label_shapes[0].shape == (2,)
    mod.forward(some_batch(4))
    assert mod.label_shapes[0].shape == (4,)


def test_shapes_that_do_not_fit_leave_the_module_as_it_was():
    mod = bound()
    mod.forward(some_batch())
    before = mod.get_outputs()[0].asnumpy()
    with pytest.raises(ValueError, match=r"fc1_weight \(4, 5\) -> \(4, 6\).*'data': \(4, 5\)"):
        mod.forward(some_batch(4, 6))
    with pytest.raises(ValueError, match="fc1_weight"):
        mod.reshape([("data", (2, 7))], [("softmax_label", (2,))])
    assert mod.data_shapes[0].shape == (4, 5)
    mod.forward(some_batch())
    assert (mod.get_outputs()[0].asnumpy() == before).all()


def test_batches_may_describe_themselves():
    mod = bound()
    batch = some_batch(3)
    batch.provide_data, batch.provide_label = [("data", (3, 5))], [("softmax_label", (3,))]
    mod.forward(batch)
    assert mod.get_outputs()[0].shape == (3, 3)
    batch.provide_data = [("img", (2, 5))]
    batch.data, batch.label = some_batch(2).data, some_batch(2).label
    with pytest.raises(ValueError, match="img"):
        mod.forward(batch)


def test_reshape_keeps_parameters():
    mod = bound()
    mod.init_optimizer(optimizer_params={"learning_rate": 0.1})
    mod.reshape([("data", (8, 5))], [("softmax_label", (8,))])
    before = params_of(mod)
    mod.forward_backward(some_batch(8))
    mod.update()
    mod.reshape([("data", (4, 5))], [("softmax_label", (4,))])
    after = params_of(mod)
    assert all(np.abs(before[k] - after[k]).max() > 0 for k in before)


def test_convolutions_take_other_images():
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=2, name="c")
    mod = mx.mod.Module(net, label_names=None)
    mod.bind([("data", (1, 1, 8, 8))], for_training=False)
    mod.init_params(mx.init.One())
    for side in (8, 5, 11):
        assert mod.predict(np.ones((1, 1, side, side))).shape == (1, 2, side - 2, side - 2)


# -- gradients -----------------------------------------------------------------------------------------------------


def test_input_gradients_and_out_grads():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    for contexts in ([mx.cpu()], [mx.cpu(0), mx.cpu(1)]):
        mod = mx.mod.Module(net, label_names=None, context=contexts)
        mod.bind([("data", (4, 3))], inputs_need_grad=True)
        w = np.arange(6.0).reshape(2, 3)
        mod.init_params(arg_params={"fc_weight": mx.nd.array(w)})
        mod.forward(mx.io.DataBatch([mx.nd.ones((4, 3))]), is_train=True)
        g = np.arange(8.0).reshape(4, 2)
        mod.backward([mx.nd.array(g)])
        assert np.allclose(mod.get_input_grads()[0].asnumpy(), g @ w)
        parts = mod.get_input_grads(merge_multi_context=False)[0]
        assert [p.context for p in parts] == contexts
        with pytest.raises(ValueError, match="no loss"):
            mod.forward(mx.io.DataBatch([mx.nd.ones((4, 3))]), is_train=True)
            mod.backward()


def test_grad_req():
    once, twice = bound(), bound(grad_req="add")
    for mod in (once, twice, twice):
        mod.forward_backward(some_batch())
    for a, b in zip(once._exec_group.grad_arrays, twice._exec_group.grad_arrays):
        np.testing.assert_allclose(2 * a[0].asnumpy(), b[0].asnumpy(), rtol=1e-5)
    mod = bound(grad_req={"fc1_weight": "null"})
    assert mod._exec_group.grad_arrays[0] == [None] and mod._exec_group.grad_arrays[1] != [None]
    names = mlp().list_arguments()
    mod = bound(grad_req=["null" if n == "fc2_bias" else "write" for n in names])
    assert mod._exec_group.execs[0].grad_dict["fc2_bias"] is None
    with pytest.raises(ValueError, match="2 grad_reqs"):
        bound(grad_req=["write"] * 2)


def test_fixed_parameters_stay():
    mod = bound(fixed_param_names=["fc1_weight", "fc1_bias"])
    mod.init_optimizer(optimizer_params={"learning_rate": 0.5})
    before = params_of(mod)
    mod.forward_backward(some_batch())
    mod.update()
    moved = {k for k, v in params_of(mod).items() if (v != before[k]).any()}
    assert moved == {"fc2_weight", "fc2_bias"}


def test_states_are_neither_data_nor_trained():
    h = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc") + mx.sym.Variable("h", shape=(0, 3))
    mod = mx.mod.Module(mx.sym.Group([mx.sym.make_loss(h), mx.sym.BlockGrad(h)]), label_names=None, state_names=["h"])
    mod.bind([("data", (2, 4))])
    mod.init_params(mx.init.Zero())
    mod.init_optimizer()
    batch = mx.io.DataBatch([mx.nd.ones((2, 4))])
    assert "h" not in mod.get_params()[0]
    mod.set_states(value=2)
    mod.forward(batch)
    assert mod.get_outputs()[1].asnumpy().tolist() == [[2] * 3] * 2
    mod.set_states(states=[mod.get_outputs()[1] + 1])
    assert mod.get_states()[0].asnumpy().tolist() == [[3] * 3] * 2
    assert mod.get_states(merge_multi_context=False)[0][0].shape == (2, 3)
    mod.forward_backward(batch)
    mod.update()
    assert mod.get_states()[0].asnumpy().tolist() == [[3] * 3] * 2
    with pytest.raises(AssertionError, match="either"):
        mod.set_states()


# -- sharing -------------------------------------------------------------------------------------------------------


def test_shared_module_shares_parameters_and_optimizer():
    mod = bound()
    mod.init_optimizer(optimizer_params={"learning_rate": 0.1})
    small = mx.mod.Module(mlp())
    small.bind([("data", (2, 5))], [("softmax_label", (2,))], shared_module=mod)
    for name in ("fc1_weight", "fc2_bias"):
        assert small._exec_group.execs[0].arg_dict[name] is mod._exec_group.execs[0].arg_dict[name]
        assert small._exec_group.execs[0].grad_dict[name] is mod._exec_group.execs[0].grad_dict[name]
    # Data are views of one buffer.
    assert np.shares_memory(
        small._exec_group.execs[0].arg_dict["data"]._data, mod._exec_group.execs[0].arg_dict["data"]._data
    )
    before = params_of(mod)
    small.forward_backward(some_batch(2))
    small.update()
    mod._params_dirty = True
    assert all((before[k] != v).any() for k, v in params_of(mod).items())
    with pytest.raises(ValueError, match="fc1_weight.*6, 5"):
        mx.mod.Module(mlp(hidden=6)).bind([("data", (2, 5))], [("softmax_label", (2,))], shared_module=mod)
    more = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mlp(), num_hidden=3, name="new"), name="softmax2")
    with pytest.raises(ValueError, match="new_weight"):
        mx.mod.Module(more, label_names=["softmax_label", "softmax2_label"]).bind(
            [("data", (2, 5))], [("softmax_label", (2,)), ("softmax2_label", (2,))], shared_module=mod
        )
    with pytest.raises(AssertionError, match="shared_module"):
        mx.mod.Module(mlp()).bind([("data", (2, 5))], [("softmax_label", (2,))], shared_module=mx.mod.Module(mlp()))


def test_borrowed_optimizers_go_by_name():
    # The second network has the same parameters in another order.
    def net(order):
        x = mx.sym.Variable("data")
        branches = {n: mx.sym.FullyConnected(x, num_hidden=3, name=n) for n in "ab"}
        return mx.sym.SoftmaxOutput(branches[order[0]] + branches[order[1]], name="softmax")

    def run(second):
        mod = bound(net("ab"))
        mod.init_params(mx.init.One(), force_init=True)
        mod.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.1})
        mod.forward_backward(some_batch())
        mod.update()
        other = mx.mod.Module(net(second))
        other.bind([("data", (4, 5))], [("softmax_label", (4,))], shared_module=mod)
        other.forward_backward(some_batch(seed=1))
        other._exec_group.execs[0].grad_dict["a_weight"][:] = 3
        other.update()
        return params_of(other)

    straight, crossed = run("ab"), run("ba")
    for k in straight:
        np.testing.assert_allclose(straight[k], crossed[k], rtol=1e-6)


# -- optimizers and stores -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "contexts, kvstore, kind, on_kvstore",
    [
        (1, "local", None, False),
        (1, "device", None, False),
        (2, None, None, False),
        (2, "local", "local", True),
        (2, "device", "device", True),
    ],
)
def test_who_updates(contexts, kvstore, kind, on_kvstore):
    mod = bound(context=[mx.cpu(i) for i in range(contexts)])
    mod.init_optimizer(kvstore=kvstore)
    assert (mod._kvstore and mod._kvstore.type) == kind and bool(mod._update_on_kvstore) is on_kvstore
    assert (mod._updater is None) is on_kvstore and mod._optimizer.rescale_grad == 0.25
    copies = 1 if on_kvstore else contexts
    assert mod._optimizer.idx2name == {i * copies + k: n for i, n in enumerate(mod._param_names) for k in range(copies)}


def test_who_updates_by_environment_and_size(monkeypatch):
    from mxcore.module.updates import create_kvstore

    big, small = {"w": mx.nd.zeros((1, (16 << 20) + 1))}, {"w": mx.nd.zeros((1, 2))}
    assert create_kvstore("local", 2, big)[1] is False and create_kvstore("device", 2, big)[1] is True
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    assert create_kvstore("local", 2, small)[1] is False
    with pytest.raises(TypeError, match="kvstore must be"):
        create_kvstore(3, 2, small)
    store = mx.kv.create("local")
    assert create_kvstore(store, 1, small)[0] is store


def test_all_ways_to_update_agree(monkeypatch):
    def run(contexts, kvstore, by_store="1"):
        monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", by_store)
        mod = bound(context=[mx.cpu(i) for i in range(contexts)])
        mod.init_optimizer(kvstore=kvstore, optimizer_params={"learning_rate": 0.3, "momentum": 0.9})
        for i in range(4):
            mod.forward_backward(some_batch(seed=i))
            mod.update()
        return params_of(mod)

    one = run(1, "local")
    for ways in ((2, "local"), (2, "device"), (2, "local", "0"), (4, "device", "0")):
        for k, v in run(*ways).items():
            np.testing.assert_allclose(v, one[k], rtol=1e-4, atol=1e-6, err_msg=f"{ways} {k}")


def test_optimizer_objects_warn_of_rescale_grad():
    mod = bound()
    with pytest.warns(MXNetWarning, match=r"1\.0 vs\. 0\.25"):
        mod.init_optimizer(optimizer=mx.optimizer.SGD())
    opt = mx.optimizer.SGD(rescale_grad=0.25)
    mod.init_optimizer(optimizer=opt, force_init=True)
    assert mod._optimizer is opt and opt.idx2name[0] == "fc1_weight"
    with pytest.raises(TypeError, match="optimizer must be"):
        mod.init_optimizer(optimizer=3, force_init=True)
    mod.init_optimizer(optimizer_params={"rescale_grad": 7.0}, force_init=True)
    assert mod._optimizer.rescale_grad == 7


def test_multipliers_of_variables_count():
    w = mx.sym.Variable("own_weight", lr_mult=0.0)
    net = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.Variable("data"), weight=w, num_hidden=3, name="fc"), name="softmax"
    )
    mod = bound(net)
    mod.init_optimizer(optimizer_params={"learning_rate": 1.0})
    before = params_of(mod)
    mod.forward_backward(some_batch())
    mod.update()
    assert (params_of(mod)["own_weight"] == before["own_weight"]).all() and (
        params_of(mod)["fc_bias"] != before["fc_bias"]
    ).any()


def test_compression_reaches_the_store():
    mod = bound(context=[mx.cpu(0), mx.cpu(1)], compression_params={"type": "2bit", "threshold": 0.5})
    mod.init_optimizer(kvstore="device", optimizer_params={"learning_rate": 1.0, "rescale_grad": 1.0})
    before = params_of(mod)
    mod.forward_backward(some_batch())
    mod.update()
    steps = np.concatenate([(before[k] - v).ravel() for k, v in params_of(mod).items()])
    assert set(np.round(steps * 2)) <= {-2, -1, 0, 1, 2} and np.abs(steps * 2 - np.round(steps * 2)).max() < 1e-5


def test_sparse_parameters_are_fetched_by_row():
    w = mx.sym.Variable("w_weight", stype="row_sparse", shape=(6, 2))
    data = mx.sym.Variable("data", stype="csr")
    out = mx.sym.sparse.dot(data, w)
    mod = mx.mod.Module(mx.sym.LinearRegressionOutput(out, name="lin"), label_names=["lin_label"])
    x = mx.nd.array([[1, 0, 0, 2, 0, 0], [0, 0, 0, 1, 0, 0]]).tostype("csr")
    mod.bind([("data", (2, 6))], [("lin_label", (2, 2))])
    mod.init_params(mx.init.One())
    mod.init_optimizer(kvstore=mx.kv.create("local"), optimizer_params={"learning_rate": 0.5})
    batch = mx.io.DataBatch([x], [mx.nd.zeros((2, 2))])
    mod.prepare(batch, sparse_row_id_fn=lambda b: {"w_weight": b.data[0].indices})
    fetched = mod._exec_group.param_arrays[0][0]
    assert fetched.stype == "row_sparse" and fetched.indices.asnumpy().tolist() == [0, 3]
    mod.forward_backward(batch)
    assert mod.get_outputs()[0].asnumpy().tolist() == [[3, 3], [1, 1]]
    mod.update()
    whole = mod.get_params()[0]["w_weight"].tostype("default").asnumpy()
    assert (whole[[1, 2, 4, 5]] == 1).all() and (whole[[0, 3]] != 1).all()
    with pytest.raises(ValueError, match="'v'.*no parameter"):
        mod.prepare(batch, sparse_row_id_fn=lambda b: {"v": b.data[0].indices})
    with pytest.raises(TypeError, match="dict"):
        mod.prepare(batch, sparse_row_id_fn=lambda b: [1])
    dense = bound()
    dense.init_optimizer()
    with pytest.warns(MXNetWarning, match="No need"):
        dense.prepare(some_batch(), sparse_row_id_fn=lambda b: {})


# -- checkpoints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contexts", [1, 2])
def test_checkpoints_go_on_where_training_stopped(tmp_path, contexts):
    prefix = str(tmp_path / "net")
    options = {"learning_rate": 0.1, "momentum": 0.9}

    def steps(mod, seeds):
        for s in seeds:
            mod.forward_backward(some_batch(seed=s))
            mod.update()
        return params_of(mod)

    ctx = [mx.cpu(i) for i in range(contexts)]
    mod = bound(context=ctx)
    mod.init_optimizer(optimizer_params=options)
    steps(mod, range(3))
    mod.save_checkpoint(prefix, 3, save_optimizer_states=True)
    assert sorted(os.listdir(tmp_path)) == ["net-0003.params", "net-0003.states", "net-symbol.json"]
    expected = steps(mod, range(3, 6))
    again = mx.mod.Module.load(prefix, 3, load_optimizer_states=True, context=ctx)
    assert again.params_initialized and not again.binded and set(again.get_params()[0]) == set(mod._param_names)
    again.bind([("data", (4, 5))], [("softmax_label", (4,))])
    again.init_optimizer(optimizer_params=options)
    for k, v in steps(again, range(3, 6)).items():
        np.testing.assert_allclose(v, expected[k], rtol=1e-5, atol=1e-7)
    symbol, args, auxs = mx.model.load_checkpoint(prefix, 3)
    assert symbol.tojson() == mod.symbol.tojson() and set(args) == set(mod._param_names) and auxs == {}


def test_a_checkpoint_of_another_network(tmp_path):
    prefix = str(tmp_path / "net")
    bound().save_checkpoint(prefix, 1)
    mlp(hidden=6).save(prefix + "-symbol.json")
    mod = mx.mod.Module.load(prefix, 1)
    with pytest.raises(ValueError, match=r"fc1_weight has shape \(4, 5\), the network needs \(6, 5\)[\s\S]*fc1_bias"):
        mod.bind([("data", (4, 5))], [("softmax_label", (4,))])
    assert not mod.binded


@pytest.mark.parametrize("part", ["params", "states", "symbol"])
def test_an_interrupted_checkpoint_leaves_the_old_one(tmp_path, monkeypatch, part):
    prefix = str(tmp_path / "net")
    mod = bound()
    mod.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    mod.forward_backward(some_batch())
    mod.update()
    mod.save_checkpoint(prefix, 1, True)
    old = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    mod.forward_backward(some_batch(seed=1))
    mod.update()
    real = os.replace

    def fail(source, target):
        if part in os.path.basename(str(target)):
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        mod.save_checkpoint(prefix, 1, True)
    monkeypatch.undo()
    # What waits for its place is no file of ours.
    now = {p.name: p.read_bytes() for p in tmp_path.iterdir() if not p.name.startswith(".")}
    assert set(now) == set(old) and all(now[n] == old[n] for n in old if part in n)
    mod.save_checkpoint(prefix, 1, True)
    assert {p.name for p in tmp_path.iterdir()} == set(old)
    assert (tmp_path / "net-0001.params").read_bytes() != old["net-0001.params"]


# -- contexts of groups --------------------------------------------------------------------------------------------


def parted():
    with mx.AttrScope(ctx_group="a"):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc1")
    with mx.AttrScope(ctx_group="b"):
        net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=3, name="fc2")
        return mx.sym.SoftmaxOutput(net, name="softmax")


@pytest.mark.parametrize(
    "contexts, groups, places",
    [
        (1, {"a": mx.cpu(1), "b": mx.cpu(2)}, [(1, 2)]),
        (2, {"a": mx.cpu(1), "b": [mx.cpu(2)]}, [(1, 2), (1, 2)]),
        (2, {"a": [mx.cpu(0), mx.cpu(1)], "b": [mx.cpu(2), mx.cpu(3)]}, [(0, 2), (1, 3)]),
        (2, [{"a": mx.cpu(0), "b": mx.cpu(2)}, {"a": mx.cpu(1), "b": mx.cpu(3)}], [(0, 2), (1, 3)]),
    ],
)
def test_model_parallel_inside_data_parallel(contexts, groups, places):
    plain = bound(parted())
    mod = bound(parted(), context=[mx.cpu(i) for i in range(contexts)], group2ctxs=groups)
    for m in (plain, mod):
        m.init_optimizer(optimizer_params={"learning_rate": 0.3})
        m.forward_backward(some_batch())
        m.update()
    for e, (a, b) in zip(mod._exec_group.execs, places):
        assert e.arg_dict["fc1_weight"].context == mx.cpu(a) and e.arg_dict["fc2_weight"].context == mx.cpu(b)
    for k, v in params_of(mod).items():
        np.testing.assert_allclose(v, params_of(plain)[k], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "groups, word",
    [
        ([{"a": mx.cpu(0)}], "1 entries for 2 contexts"),
        ({"a": [mx.cpu(0)] * 3}, "3 contexts for 2"),
        (3, "must be a dict"),
    ],
)
def test_wrong_groups(groups, word):
    with pytest.raises((ValueError, TypeError), match=word):
        mx.mod.Module(parted(), context=[mx.cpu(0), mx.cpu(1)], group2ctxs=groups)


# -- metrics and monitors ------------------------------------------------------------------------------------------


def test_metrics_that_do_not_fit_name_outputs_and_labels():
    mod = bound()
    mod.forward(some_batch())
    with pytest.raises(ValueError, match=re.escape("labels {} with outputs {softmax_output: (4, 3)}")):
        mod.update_metric(mx.metric.Accuracy(), [])
    with pytest.raises(KeyError, match="'foo'.*softmax_label"):
        mod.update_metric(mx.metric.Accuracy(label_names=["foo"]), some_batch().label)
    with pytest.raises(ValueError, match="metric 'f1'.*softmax_output"):
        mod.update_metric(mx.metric.F1(), some_batch().label)


class Watcher:
    """As much of a monitor as an executor needs."""

    def __init__(self):
        self.seen, self.execs = [], 0

    def install(self, exe):
        self.execs += 1
        exe.set_monitor_callback(lambda name, array: self.seen.append((name, array.shape)))


def test_monitors_watch_executors_of_all_shapes():
    mod, watcher = bound(), Watcher()
    mod.install_monitor(watcher)
    mod.forward(some_batch(), is_train=False)
    mod.forward(some_batch(2), is_train=False)
    assert watcher.execs == 2
    assert [s for n, s in watcher.seen if n == "fc1_output"] == [(4, 4), (2, 4)]


def test_a_list_of_groups_for_one_executor_is_told_where_it_belongs():
    with pytest.raises(TypeError, match=r"mod\.Module\(group2ctxs="):
        parted().simple_bind(mx.cpu(), group2ctx=[{"a": mx.cpu(1)}], data=(4, 5))


@pytest.mark.parametrize("allow_missing", [False, True])
def test_parameters_set_later_reach_a_store_that_updates(allow_missing):
    net = mx.sym.LinearRegressionOutput(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, no_bias=True, name="fc"), name="out"
    )
    mod = mx.mod.Module(net, label_names=["out_label"])
    mod.bind([("data", (4, 2))], [("out_label", (4, 1))])
    mod.init_params(mx.init.One())
    mod.init_optimizer(mx.kv.create("local"), "sgd", {"learning_rate": 0.0})
    batch = mx.io.DataBatch([mx.nd.ones((4, 2))], [mx.nd.zeros((4, 1))])
    mod.set_params({"fc_weight": mx.nd.array([[5, 6]])}, {}, allow_missing=allow_missing)
    mod.forward_backward(batch)
    mod.update()
    np.testing.assert_array_equal(mod.get_params()[0]["fc_weight"].asnumpy(), [[5, 6]])


def test_states_may_hold_the_optimizer(tmp_path):
    rs = np.random.RandomState(0)
    batches = [mx.io.DataBatch([mx.nd.array(rs.rand(4, 5))], [mx.nd.array(rs.randint(0, 3, 4))]) for _ in range(6)]

    def make():
        net = mx.sym.SoftmaxOutput(
            mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc"), name="softmax"
        )
        mod = mx.mod.Module(net)
        mod.bind([("data", (4, 5))], [("softmax_label", (4,))])
        mod.init_params(mx.init.Xavier())
        mod.init_optimizer(mx.kv.create("local"), "adam", {"learning_rate": 0.1})
        return mod

    def steps(mod, these):
        for batch in these:
            mod.forward_backward(batch)
            mod.update()

    first, second = make(), make()
    steps(first, batches[:3])
    first.save_optimizer_states(str(tmp_path / "states"), dump_optimizer=True)
    second.set_params(*first.get_params())
    second.load_optimizer_states(str(tmp_path / "states"))
    for mod in (first, second):
        steps(mod, batches[3:])
    for name, value in first.get_params()[0].items():
        np.testing.assert_allclose(second.get_params()[0][name].asnumpy(), value.asnumpy(), rtol=1e-6, atol=1e-7)


def test_counts_of_updates_survive_on_another_context(tmp_path):
    batch = mx.io.DataBatch([mx.nd.ones((4, 5))], [mx.nd.zeros(4)])

    def steps(ctx, count, file=None):
        net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3), name="softmax")
        mod = mx.mod.Module(net, context=ctx)
        mod.bind([("data", (4, 5))], [("softmax_label", (4,))])
        mod.init_params()
        mod.init_optimizer(None, "adam")
        if file:
            mod.load_optimizer_states(file)
        for _ in range(count):
            mod.forward_backward(batch)
            mod.update()
        return mod

    file = str(tmp_path / "states")
    steps(mx.cpu(0), 3).save_optimizer_states(file, dump_optimizer=True)
    assert steps(mx.cpu(1), 1, file)._optimizer._all_index_update_counts == {1: {0: 4, 1: 4}}


def test_an_input_may_be_called_as_a_gradient():
    x, y = mx.sym.Variable("x"), mx.sym.Variable("grad of x")
    mod = mx.mod.Module(mx.sym.make_loss(2 * x * y), ("x", "grad of x"), None)
    mod.bind([("x", (2, 2)), ("grad of x", (2, 2))], inputs_need_grad=True)
    mod.init_params()
    mod.forward(mx.io.DataBatch([mx.nd.ones((2, 2)) * 3, mx.nd.ones((2, 2)) * 5]), is_train=True)
    for _ in range(2):
        mod.backward()
        assert [g.asnumpy()[0, 0] for g in mod.get_input_grads()] == [10, 6]
