"""The ways in which scripts predict: batches of any class, unnamed labels, others' checkpoints."""

from collections import namedtuple

import numpy as np
import pytest

import mxcore as mx

from .conftest import bound, mlp, params_of, some_batch

Batch = namedtuple("Batch", ["data"])


@pytest.mark.parametrize("contexts", [1, 2])
def test_batches_may_be_namedtuples(contexts):
    mod = bound(context=[mx.cpu(i) for i in range(contexts)])
    batch = some_batch()
    mod.forward(batch, is_train=False)
    want = mod.get_outputs()[0].asnumpy()
    mod.forward(Batch(batch.data), is_train=False)
    np.testing.assert_array_equal(mod.get_outputs()[0].asnumpy(), want)
    mod.forward(Batch([mx.nd.concat(*batch.data * 2, dim=0)]), is_train=False)
    np.testing.assert_array_equal(mod.get_outputs()[0].asnumpy(), np.concatenate([want, want]))


def test_buckets_take_namedtuples():
    Bucket = namedtuple("Bucket", ["data", "bucket_key"])
    mod = mx.mod.BucketingModule(lambda key: (mlp(), ("data",), ("softmax_label",)), default_bucket_key=1)
    mod.bind([("data", (4, 5))], [("softmax_label", (4,))])
    mod.init_params()
    with pytest.warns(UserWarning, match="no label_shapes"):
        mod.forward(Bucket(some_batch().data, 2), is_train=False)
    assert mod.get_outputs()[0].shape == (4, 3)


def test_labels_that_are_not_named_need_no_values(tmp_path):
    first = bound()
    first.save_checkpoint(str(tmp_path / "m"), 1)
    batch = some_batch()
    first.forward(batch, is_train=False)
    mod = mx.mod.Module.load(str(tmp_path / "m"), 1, label_names=None)
    mod.bind([("data", (4, 5))], for_training=False)
    mod.forward(Batch(batch.data))
    np.testing.assert_array_equal(mod.get_outputs()[0].asnumpy(), first.get_outputs()[0].asnumpy())
    assert params_of(mod).keys() == params_of(first).keys()
    with pytest.raises(ValueError, match="softmax_label.*name it in label_names"):
        mod.forward(some_batch(2), is_train=False)


def test_a_label_behind_other_operators_needs_no_value(tmp_path):
    label = mx.sym.BlockGrad(mx.sym.Variable("target"))
    net = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc"), label, name="softmax"
    )
    weights = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros(2)}
    mx.model.save_checkpoint(str(tmp_path / "m"), 1, net, weights, {})
    mod = mx.mod.Module.load(str(tmp_path / "m"), 1, label_names=None)
    mod.bind([("data", (4, 3))], for_training=False)
    assert mod.predict(mx.nd.ones((4, 3))).shape == (4, 2)
    del weights["fc_bias"]
    mx.model.save_checkpoint(str(tmp_path / "m"), 2, net, weights, {})
    with pytest.raises(RuntimeError, match="missing: fc_bias"):
        mx.mod.Module.load(str(tmp_path / "m"), 2, label_names=None).bind([("data", (4, 3))], for_training=False)


def test_a_checkpoint_may_hold_a_label(tmp_path):
    first = mx.mod.Module(mlp(), label_names=None)
    first.bind([("data", (1, 5))], for_training=False)
    weights = params_of(bound())
    first.set_params({k: mx.nd.array(v) for k, v in weights.items()}, {}, allow_missing=True)
    first.save_checkpoint(str(tmp_path / "m"), 1)
    assert "arg:softmax_label" in mx.nd.load(str(tmp_path / "m-0001.params"))
    mod = mx.mod.Module.load(str(tmp_path / "m"), 1)
    mod.bind([("data", (4, 5))], [("softmax_label", (4,))])
    assert params_of(mod).keys() == weights.keys()
    _, args, auxs = mx.model.load_checkpoint(str(tmp_path / "m"), 1)
    mod.set_params(args, auxs, allow_missing=True)
    np.testing.assert_array_equal(params_of(mod)["fc1_weight"], weights["fc1_weight"])


def test_rebinding_keeps_what_was_learnt():
    mod = bound()
    mod.init_optimizer(optimizer_params={"learning_rate": 1.0})
    mod.forward_backward(some_batch())
    mod.update()
    after = params_of(mod)
    mod.bind([("data", (2, 5))], for_training=False, label_shapes=[("softmax_label", (2,))], force_rebind=True)
    np.testing.assert_array_equal(params_of(mod)["fc1_weight"], after["fc1_weight"])


@pytest.mark.parametrize("contexts", [1, 2])
def test_what_was_bound_for_prediction_cannot_be_updated(contexts):
    mod = mx.mod.Module(mlp(), context=[mx.cpu(i) for i in range(contexts)])
    mod.bind([("data", (4, 5))], [("softmax_label", (4,))], for_training=False)
    mod.init_params()
    mod.init_optimizer()
    with pytest.raises(AssertionError, match="update: .*for_training=False"):
        mod.update()
