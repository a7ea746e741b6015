"""Slices of batches over contexts."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.module.executor_group import DataParallelExecutorGroup
from mxcore.module.slicing import split_rows

from .conftest import bound, mlp, params_of, some_batch


@pytest.mark.parametrize(
    "size, loads, ends",
    [
        (8, [1, 1], [4, 8]),
        (9, [1, 1], [4, 9]),
        (10, [1, 1, 2], [2, 4, 10]),
        (7, [1, 1, 1], [2, 4, 7]),
        (3, [0.5, 0.25], [2, 3]),
    ],
)
def test_split_rows(size, loads, ends):
    assert [s.stop for s in split_rows(size, loads)] == ends
    assert [s.start for s in split_rows(size, loads)] == [0, *ends[:-1]]


def test_too_many_contexts():
    with pytest.raises(ValueError, match="batch of 4 is too small for 5 contexts"):
        bound(context=[mx.cpu(i) for i in range(5)])


def test_work_load_list():
    mod = bound(context=[mx.cpu(0), mx.cpu(1)], work_load_list=[1, 3])
    assert mod._exec_group.slices == [slice(0, 1), slice(1, 4)]
    mod.forward(some_batch(), is_train=False)
    assert [p.shape for p in mod.get_outputs(merge_multi_context=False)[0]] == [(1, 3), (3, 3)]
    mod.forward(some_batch(8), is_train=False)
    assert mod._exec_group.slices == [slice(0, 2), slice(2, 8)]
    with pytest.raises(AssertionError, match="1 entries for 2 contexts"):
        bound(context=[mx.cpu(0), mx.cpu(1)], work_load_list=[1])


def test_contexts_agree_with_one():
    one, three = bound(size=6), bound(size=6, context=[mx.cpu(i) for i in range(3)])
    metrics = [mx.metric.Accuracy(), mx.metric.Accuracy()]
    for mod, metric in zip((one, three), metrics):
        mod.forward_backward(some_batch(6))
        mod.update_metric(metric, some_batch(6).label)
    np.testing.assert_allclose(one.get_outputs()[0].asnumpy(), three.get_outputs()[0].asnumpy(), rtol=1e-6)
    for a, parts in zip(one._exec_group.grad_arrays, three._exec_group.grad_arrays):
        np.testing.assert_allclose(a[0].asnumpy(), sum(p.asnumpy() for p in parts), rtol=1e-4, atol=1e-6)
    assert metrics[0].get() == metrics[1].get()
    assert three.output_shapes == [("softmax_output", (6, 3))]
    assert [o.context for o in three.get_outputs(False)[0]] == [mx.cpu(i) for i in range(3)]


def test_parameters_are_the_means_over_contexts():
    mod = bound(context=[mx.cpu(0), mx.cpu(1)])
    for k, e in enumerate(mod._exec_group.execs):
        e.arg_dict["fc1_bias"][:] = k * 2
    mod._params_dirty = True
    assert params_of(mod)["fc1_bias"].tolist() == [1] * 4


def test_batch_axes_by_layout():
    data = mx.io.DataDesc("data", (5, 4, 3), layout="TNC")
    net = mx.sym.Variable("data") * 2
    net._set_attr(__layout__="TNC")
    mod = mx.mod.Module(net, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    mod.bind([data], for_training=False)
    mod.init_params()
    assert mod._exec_group.batch_size == 4 and mod._exec_group.execs[0].arg_dict["data"].shape == (5, 2, 3)
    x = np.random.RandomState(0).randn(5, 4, 3).astype("float32")
    mod.forward(mx.io.DataBatch([mx.nd.array(x)]))
    np.testing.assert_allclose(mod.get_outputs()[0].asnumpy(), x * 2)
    assert mod.output_shapes[0][1] == (5, 4, 3)


def test_arrays_without_batch_axis_go_to_all_contexts():
    net = mx.sym.broadcast_mul(mx.sym.Variable("data"), mx.sym.Variable("scale"))
    mod = mx.mod.Module(net, data_names=["data", "scale"], label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    mod.bind([("data", (4, 3)), mx.io.DataDesc("scale", (1, 3), layout="CD")], for_training=False)
    mod.init_params()
    mod.forward(mx.io.DataBatch([mx.nd.ones((4, 3)), mx.nd.array([[1, 2, 3]])]))
    assert mod.get_outputs()[0].asnumpy().tolist() == [[1, 2, 3]] * 4
    with pytest.raises(ValueError, match="no array of the batch has a batch axis"):
        mx.mod.Module(mx.sym.Variable("data") * 1, label_names=None).bind([mx.io.DataDesc("data", (4, 3), layout="CD")])


def test_batch_sizes_must_agree():
    with pytest.raises(AssertionError, match=r"it is 4, but softmax_label has shape \(8,\)"):
        mx.mod.Module(mlp()).bind([("data", (4, 5))], [("softmax_label", (8,))])
    with pytest.raises(ValueError, match="has no axis 1"):
        mx.mod.Module(mx.sym.Variable("data") * 1, label_names=None).bind([mx.io.DataDesc("data", (4,), layout="TN")])


def test_dtypes_of_descriptions():
    net = mx.sym.Cast(mx.sym.Variable("data"), dtype="float32") * 1.5
    mod = mx.mod.Module(net, label_names=None)
    mod.bind([mx.io.DataDesc("data", (2, 2), "int32")], for_training=False)
    mod.init_params()
    assert mod._exec_group.execs[0].arg_dict["data"].dtype == np.int32
    mod.forward(mx.io.DataBatch([mx.nd.array([[1, 2], [3, 4]], dtype="int32")]))
    assert mod.get_outputs()[0].asnumpy().tolist() == [[1.5, 3], [4.5, 6]]


def test_numpy_arrays_in_batches():
    mod = bound()
    mod.forward(mx.io.DataBatch([some_batch().data[0].asnumpy()], [some_batch().label[0].asnumpy()]))
    plain = mod.get_outputs()[0].asnumpy()
    mod.forward(some_batch())
    assert (plain == mod.get_outputs()[0].asnumpy()).all()


def test_the_group_by_itself():
    net = mlp()
    names = [n for n in net.list_arguments() if n not in ("data", "softmax_label")]
    group = DataParallelExecutorGroup(
        net,
        [mx.cpu(0), mx.cpu(1)],
        [1, 1],
        [mx.io.DataDesc("data", (4, 5))],
        [mx.io.DataDesc("softmax_label", (4,))],
        names,
        True,
        False,
    )
    assert len(group.execs) == 2 and group.batch_size == 4 and group.num_outputs == 1
    assert [[a.shape for _, a in arrays] for arrays in group.data_arrays] == [[(2, 5), (2, 5)]]
    assert len(group.param_arrays) == 4 and group.input_grad_arrays is None and group.aux_arrays == []
    group.set_params({n: mx.nd.ones(a[0].shape) for n, a in zip(names, group.param_arrays)}, {})
    into = {n: mx.nd.zeros(a[0].shape) for n, a in zip(names, group.param_arrays)}
    group.get_params(into, {})
    assert all(v.asnumpy().min() == 1 for v in into.values())
    group.forward(some_batch())
    assert group.get_outputs(begin=0, end=1)[0].shape == (4, 3)
