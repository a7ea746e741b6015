"""Monitor, beside that of the real MXNet 1.9.1."""

import json
import logging
import pathlib

import numpy as np
import pytest

import mxcore as mx

from . import cases

GOLDEN = json.loads((pathlib.Path(__file__).resolve().parent / "golden.json").read_text())


@pytest.mark.parametrize("way", cases.WAYS)
def test_reports(way):
    found = cases.reports(mx, way)
    assert [[row[:2] for row in batch] for batch in found] == [
        [row[:2] for row in batch] for batch in GOLDEN["reports"][way]
    ]
    for a, b in zip(found, GOLDEN["reports"][way]):
        np.testing.assert_allclose([row[2] for row in a], [row[2] for row in b], rtol=1e-5)


@pytest.mark.parametrize("way", cases.NAMES)
def test_names_and_numbers_of_all_values(way):
    found = cases.rows(mx, **cases.NAMES[way])
    assert [name for name, _ in found] == [name for name, _ in GOLDEN["names"][way]]
    np.testing.assert_allclose([x for _, x in found], [x for _, x in GOLDEN["names"][way]], rtol=1e-4, atol=1e-6)


def told(exe, **head):
    """Name -> value of all that a callback is told in a training step."""
    found = []
    exe.set_monitor_callback(lambda name, array: found.append((name, array.asnumpy())))
    exe.forward(is_train=True)
    exe.backward(**head)
    exe.set_monitor_callback(None)
    return found


def test_gradients_are_those_of_each_reader():
    x = mx.sym.Variable("x")
    y = mx.sym.elemwise_add(mx.sym.square(x, name="sq"), x, name="sum")
    exe = mx.sym.make_loss(y, name="l").simple_bind(mx.cpu(), x=(2,))
    exe.arg_dict["x"][:] = [3, 5]
    found = dict(told(exe))
    for name, value in {
        "sum_backward_output0": [1, 1],
        "sum_backward_output1": [1, 1],
        "sq_backward_output": [6, 10],
        "sum_grad_output": [7, 11],
        "l_backward_output": [1, 1],
    }.items():
        assert found[name].tolist() == value, name
    np.testing.assert_array_equal(exe.grad_dict["x"].asnumpy(), [7, 11])


def test_a_monitored_step_changes_no_result():
    want, exe = cases.executor(mx), cases.executor(mx)
    for e, rows in ((want, None), (exe, [])):
        if rows is not None:
            e.set_monitor_callback(lambda name, array: rows.append(name), monitor_all=True)
        e.forward(is_train=True)
        e.backward()
    for name, g in want.grad_dict.items():
        np.testing.assert_allclose(exe.grad_dict[name].asnumpy(), g.asnumpy(), rtol=1e-6, atol=1e-7)


def test_sparse_gradients_pass_monitors():
    x = mx.sym.Embedding(
        mx.sym.Variable("i"),
        mx.sym.Variable("w", stype="row_sparse"),
        input_dim=5,
        output_dim=2,
        sparse_grad=True,
        name="e",
    )
    exe = mx.sym.make_loss(mx.sym.sum(x)).simple_bind(mx.cpu(), i=(2,), grad_req={"i": "null", "w": "write"})
    exe.arg_dict["i"][:] = [1, 3]
    found = dict(told(exe))
    assert found["e_output"].shape == (2, 2) and exe.grad_dict["w"].stype == "row_sparse"
    assert exe.grad_dict["w"].indices.asnumpy().tolist() == [1, 3]


@pytest.mark.parametrize("train", [True, False])
def test_nodes_of_other_contexts(train):
    with mx.AttrScope(ctx_group="there"):
        x = mx.sym.BatchNorm(mx.sym.Variable("x"), name="bn")
    exe = mx.sym.make_loss(mx.sym.exp(x, name="e"), name="l").simple_bind(
        mx.cpu(), x=(2, 3), group2ctx={"there": mx.cpu(1)}
    )
    at = {}
    exe.set_monitor_callback(lambda name, array: at.update({name: array.context}))
    exe.forward(is_train=train)
    exe.backward()
    assert {at[n] for n in ("bn_output", "bn_mean", "bn_var")} == {mx.cpu(1)} and at["e_output"] == mx.cpu(0)
    assert not train or (at["bn_backward_output0"], at["e_backward_output"]) == (mx.cpu(1), mx.cpu(0))


def test_own_operators_keep_their_state():
    made = []

    class Own(mx.operator.CustomOp):
        def __init__(self):
            made.append(0)

        def forward(self, is_train, req, in_data, out_data, aux):
            made[-1] += 1
            self.assign(out_data[0], req[0], in_data[0] * made[-1])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0])

    @mx.operator.register("monitored_own")
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Own()

    exe = mx.sym.make_loss(
        mx.sym.Custom(mx.sym.exp(mx.sym.Variable("x")), op_type="monitored_own", name="own")
    ).simple_bind(mx.cpu(), x=(2,))
    exe.forward(is_train=True)
    exe.backward()
    made[:] = made[-1:]
    found = told(exe)
    exe.forward(is_train=True)
    assert (
        "own_backward_output" in dict(found) and len(made) == 1 and exe.outputs[0].asnumpy().tolist() == [made[0]] * 2
    )


def test_inputs_and_several_statistics():
    exe = cases.executor(mx)
    mon = mx.mon.Monitor(1, stat_func=lambda x: [x.max(), x.min(axis=0)], pattern="fc1", monitor_all=True)
    mon.install(exe)
    mon.tic()
    exe.forward()
    rows = {name: text for _, name, text in mon.toc()}
    assert {"fc1_weight", "fc1_bias", "fc1_output"} <= set(rows) and all(n.startswith("fc1") for n in rows)
    weight = exe.arg_dict["fc1_weight"].asnumpy()
    assert rows["fc1_weight"] == str(weight.max()) + "\t" + str(weight.min(axis=0)) + "\t"


def test_gradients_are_seen_and_what_is_between_reports_is_not():
    exe, mon = cases.executor(mx), mx.mon.Monitor(2)
    mon.install(exe)
    mon.tic()
    exe.forward(is_train=True)
    exe.backward()
    first = mon.toc()
    more = {name for _, name, _ in first} - {name for _, name, _ in GOLDEN["reports"]["plain"][0]}
    assert more == {
        *(f"softmax_backward_output{j}" for j in range(2)),
        "a1_backward_output",
        *(f"fc{i}_backward_output{j}" for i in (1, 2) for j in range(3)),
    }
    mon.tic()
    exe.forward(is_train=True)
    assert mon.toc() == [] and exe._monitor is None


def test_all_gradients_of_an_operator_are_told_and_none_of_others():
    x, label = mx.sym.Variable("data"), mx.sym.Variable("label")
    shared = mx.sym.elemwise_add(mx.sym.exp(x, name="e"), x, name="sum")
    fc = mx.sym.FullyConnected(mx.sym.where(mx.sym.Variable("c"), shared, x, name="w"), num_hidden=2, name="fc")
    exe = mx.sym.SoftmaxOutput(fc, label, name="softmax").simple_bind(
        mx.cpu(), data=(3, 4), c=(3, 4), label=(3,), grad_req={"fc_weight": "write", "fc_bias": "add"}
    )
    exe.arg_dict["fc_weight"][:] = [[1] * 4, [-1] * 4]
    found = dict(told(exe))
    # Neither of the branch that nobody trains.
    assert sorted(n for n in found if "backward" in n or "sum_grad" in n) == [
        *(f"fc_backward_output{j}" for j in range(3)),
        *(f"softmax_backward_output{j}" for j in range(2)),
    ]
    np.testing.assert_allclose(
        found["fc_backward_output0"], found["softmax_backward_output0"] @ exe.arg_dict["fc_weight"].asnumpy()
    )
    assert found["softmax_backward_output1"].tolist() == [0, 0, 0] and not exe.grad_dict["label"]
    mod = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=2, name="fc"), name="softmax"))
    mod.bind([("data", (2, 4))], [("softmax_label", (2,))])
    mod.init_params()
    mon = mx.mon.Monitor(1, pattern=".*backward")
    mod.install_monitor(mon)
    mon.tic()
    mod.forward_backward(mx.io.DataBatch([mx.nd.ones((2, 4))], [mx.nd.ones(2)]))
    assert [name for _, name, _ in mon.toc()] == [
        "softmax_backward_output0",
        "softmax_backward_output1",
        *(f"fc_backward_output{j}" for j in range(3)),
    ]


def test_gradients_of_branches_are_counted_without_conditions():
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    exe = mx.sym.make_loss(mx.sym.where(mx.sym.Variable("c"), x, y, name="w"), name="l").simple_bind(
        mx.cpu(), x=(2,), y=(2,), c=(2,)
    )
    exe.arg_dict["c"][:] = [1, 0]
    found = dict(told(exe))
    assert found["w_backward_output0"].tolist() == [1, 0] and found["w_backward_output1"].tolist() == [0, 1]
    assert "w_backward_output2" not in found


def test_toc_print_logs(caplog):
    exe, mon = cases.executor(mx), mx.mon.Monitor(1, pattern="fc2_bias")
    mon.install(exe)
    mon.tic()
    exe.forward()
    with caplog.at_level(logging.INFO):
        mon.toc_print()
    size = np.sqrt(np.mean(exe.arg_dict["fc2_bias"].asnumpy() ** 2))
    assert (
        caplog.messages[0].startswith(f"Batch: {1:7d} {'fc2_bias':30s} {size:.4f}"[:-1]) and len(caplog.messages) == 1
    )


def test_several_executors_and_a_module():
    a, b = cases.executor(mx), cases.executor(mx)
    mon = mx.mon.Monitor(1, pattern="softmax_output")
    mon.install(a)
    mon.tic()
    mon.install(b)
    a.forward()
    b.forward()
    assert len(mon.toc()) == 2
    data = mx.io.NDArrayIter(np.ones((4, 4), "float32"), np.zeros(4, "float32"), 2)
    mod = mx.mod.Module(a._symbol)
    watched = []
    mon = mx.mon.Monitor(1, pattern="softmax_output", stat_func=lambda x: watched.append(x.shape) or x.mean())
    mod.fit(data, num_epoch=1, monitor=mon)
    assert watched == [(2, 2)] * 2


BAD = {
    "interval": (lambda: mx.mon.Monitor(0), ValueError, "interval must be 1 or more"),
    "pattern": (lambda: mx.mon.Monitor(1, pattern="("), ValueError, "no regular expression"),
    "no executor": (lambda: mx.mon.Monitor(1).install("mod"), TypeError, "install_monitor"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_arguments(name):
    what, kind, text = BAD[name]
    with pytest.raises(mx.MXNetError, match=text) as e:
        what()
    assert isinstance(e.value, kind)


def test_a_statistic_that_is_none():
    exe, mon = cases.executor(mx), mx.mon.Monitor(1, stat_func=lambda x: "large", pattern="data")
    mon.install(exe)
    mon.tic()
    exe.forward()
    with pytest.raises(TypeError, match="stat_func gave str for 'data'"):
        mon.toc()
