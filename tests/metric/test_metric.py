"""Metrics by hand, their creation, their configurations and their errors."""

import math

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

nd = mx.nd.array
NAMES = {
    "accuracy": "Accuracy",
    "acc": "Accuracy",
    "top_k_accuracy": "TopKAccuracy",
    "top_k_acc": "TopKAccuracy",
    "topkaccuracy": "TopKAccuracy",
    "f1": "F1",
    "mcc": "MCC",
    "pcc": "PCC",
    "perplexity": "Perplexity",
    "mae": "MAE",
    "mse": "MSE",
    "rmse": "RMSE",
    "crossentropy": "CrossEntropy",
    "ce": "CrossEntropy",
    "loss": "Loss",
    "negativeloglikelihood": "NegativeLogLikelihood",
    "nll_loss": "NegativeLogLikelihood",
    "torch": "Torch",
    "pearsoncorrelation": "PearsonCorrelation",
    "pearsonr": "PearsonCorrelation",
    "caffe": "Caffe",
    "compositeevalmetric": "CompositeEvalMetric",
    "composite": "CompositeEvalMetric",
}
ARGUMENTS = {"TopKAccuracy": {"top_k": 3}, "Perplexity": {"ignore_label": None}}


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    kind = NAMES[name]
    metric = mx.metric.create(name.upper(), **ARGUMENTS.get(kind, {}))
    assert type(metric) is getattr(mx.metric, kind)


@pytest.mark.parametrize("kind", sorted(set(NAMES.values())))
def test_configurations_make_the_same_metric(kind):
    metric = getattr(mx.metric, kind)(**ARGUMENTS.get(kind, {}))
    config = metric.get_config()
    assert config["metric"] == kind and config["name"] == metric.name and config["label_names"] is None
    assert type(mx.metric.create(config)) is type(metric)


def test_new_metrics_know_nothing():
    for kind in set(NAMES.values()) - {"CompositeEvalMetric"}:
        metric = getattr(mx.metric, kind)(**ARGUMENTS.get(kind, {}))
        assert math.isnan(metric.get()[1]) and math.isnan(metric.get_global()[1])


def test_create_takes_many_forms():
    accuracy = mx.metric.Accuracy()
    assert mx.metric.create(accuracy) is accuracy
    assert mx.metric.create('["acc", {"axis": 2}]').axis == 2
    assert mx.metric.create('{"metric": "acc", "axis": 2}').axis == 2
    assert mx.metric.create(max).name == "max"
    several = mx.metric.create(["acc", accuracy, ["mse", "mae"]])
    assert several.get()[0] == ["accuracy", "accuracy", "mse", "mae"]


def test_unknown_names_suggest_near_ones():
    with pytest.raises(MXNetError, match="accuracy"):
        mx.metric.create("acuracy")
    with pytest.raises(MXNetError, match="name"):
        mx.metric.create(3)


def test_accuracy_by_hand():
    metric = mx.metric.Accuracy(name="a")
    metric.update(nd([0, 1, 1]), nd([[0.3, 0.7], [0, 1.0], [0.4, 0.6]]))
    assert metric.get() == ("a", pytest.approx(2 / 3)) and metric.num_inst == 3 and metric.sum_metric == 2
    assert str(metric) == f"EvalMetric: {{'a': {2 / 3}}}"
    assert metric.get_name_value() == [("a", 2 / 3)]


def test_two_accounts():
    metric = mx.metric.MAE()
    metric.update([nd([1.0])], [nd([3.0])])
    metric.reset_local()
    assert math.isnan(metric.get()[1]) and metric.get_global() == ("mae", 2.0)
    metric.update([nd([1.0])], [nd([1.0])])
    assert metric.get() == ("mae", 0.0) and metric.get_global_name_value() == [("mae", 1.0)]
    metric.reset()
    assert math.isnan(metric.get_global()[1])


def test_perfect_and_opposite_answers():
    label, right = nd([0, 1, 1, 0]), nd([[1.0, 0], [0, 1.0], [0, 1.0], [1.0, 0]])
    for kind, value in (("F1", 1), ("MCC", 1), ("PCC", 1), ("Perplexity", 1), ("CrossEntropy", 0)):
        metric = getattr(mx.metric, kind)(**ARGUMENTS.get(kind, {}))
        metric.update([label], [right])
        assert metric.get()[1] == pytest.approx(value, abs=1e-6)
    metric = mx.metric.MCC()
    metric.update([label], [right[:, ::-1]])
    assert metric.get()[1] == -1


def test_pcc_grows_with_the_classes():
    metric = mx.metric.PCC()
    metric.update([nd([0, 1])], [nd([0, 1])])
    metric.update([nd([0, 5, 2])], [nd([1, 5, 2])])
    label, pred = np.eye(6)[[0, 1, 0, 5, 2]], np.eye(6)[[0, 1, 1, 5, 2]]
    label, pred = label - label.mean(0), pred - pred.mean(0)
    spread = (label**2).sum() * (pred**2).sum()
    assert metric.get()[1] == pytest.approx((label * pred).sum() / spread**0.5)


def test_empty_batches_do_not_move_the_correlation_of_everything():
    metric = mx.metric.PearsonCorrelation(average="micro")
    batch = nd([1.0, 2, 4]), nd([2.0, 3, 9])
    metric.update([nd([])], [nd([])])
    assert math.isnan(metric.get()[1])
    for label, pred in (batch, (nd([]), nd([])), batch, (nd([]), nd([]))):
        metric.update([label], [pred])
        assert metric.get()[1] == pytest.approx(0.97986371)


@pytest.mark.parametrize(
    "ignored, dtype, labels, value",  # as MXNet 1.9.1 computes them
    [
        (0, "float32", [0.5, 1.5, 2], 2.75161),
        (1, "float64", [0.5, 1.5, 2], 2.75161),
        (-1, "float32", [0.99999, 1.2, -1.5], 3.02853),
        (2, "float16", [-0.5, -1, 2.9], 5.0),
        (0, "float32", [0, 1, 2], 2.04124),
        (1.5, "float32", [0.5, 1.5, 2], 3.53553),
        (1.5, "int32", [0, 1, 2], 3.53553),
        (16777217, "uint8", [0, 1, 2], 3.53553),
    ],
)
def test_the_label_that_does_not_count_is_compared_before_fractions_are_cut(ignored, dtype, labels, value):
    metric = mx.metric.Perplexity(ignore_label=ignored)
    pred = nd([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
    metric.update([mx.nd.array(labels, dtype=dtype)], [pred])
    assert metric.get()[1] == pytest.approx(value, abs=1e-5)


def test_perplexity_without_classes():
    metric = mx.metric.Perplexity(ignore_label=None)
    metric.update([nd([])], [nd([])])
    assert math.isnan(metric.get()[1])
    with pytest.raises(ValueError, match="do not fit"):
        metric.update([nd([0, 0])], [nd(np.zeros((2, 0)))])


def test_top_k_of_few_classes_is_all():
    metric = mx.metric.TopKAccuracy(top_k=2)
    metric.update([nd([1, 0])], [nd([[0.2, 0.8], [0.9, 0.1]])])
    assert metric.get() == ("top_k_accuracy_2", 1.0)


def test_functions():
    def worst(label, pred):
        return abs(label - pred).max()

    metric = mx.metric.np(worst)
    metric.update([nd([1, 2])], [nd([1, 5])])
    metric.update([nd([1, 2])], [nd([1, 3])])
    assert metric.get() == ("worst", 2.0)
    sums = mx.metric.CustomMetric(lambda label, pred: (pred.sum(), pred.size))
    sums.update([nd([0, 0])], [nd([1, 3])])
    assert sums.get() == ("custom(<lambda>)", 2.0)
    extra = mx.metric.np(worst, allow_extra_outputs=True)
    extra.update([nd([1])], [nd([2]), nd([7])])
    assert extra.get()[1] == 1
    with pytest.raises(MXNetError, match="configuration"):
        metric.get_config()


def test_composite():
    both = mx.metric.CompositeEvalMetric(["acc"], output_names=["out"], label_names=["l"])
    both.add(mx.metric.MAE(output_names=["p"], label_names=["l"]))
    with pytest.raises(MXNetError, match="'p'"):
        both.update_dict({"l": nd([1, 0])}, {"out": nd([[0, 1], [0, 1.0]]), "p": nd([1, 2])})
    both = mx.metric.create(["acc", mx.metric.np(lambda label, pred: 2.0, name="two")])
    both.update_dict({"l": nd([1, 0])}, {"out": nd([[0, 1], [0, 1.0]])})
    assert both.get() == (["accuracy", "two"], [0.5, 2.0])
    assert both.get_global_name_value() == [("accuracy", 0.5), ("two", 2.0)]
    assert both.get_metric(1).name == "two"
    with pytest.raises(MXNetError, match="metric 2 of 2"):
        both.get_metric(2)
    both.reset_local()
    assert math.isnan(both.get()[1][0]) and both.get_global()[1][0] == 0.5


def test_names_pick_outputs_and_labels():
    metric = mx.metric.Accuracy(output_names=["o"], label_names=["l"])
    metric.update_dict({"x": nd([3]), "l": nd([1, 0])}, {"o": nd([[0, 1], [0, 1.0]]), "p": nd([1])})
    assert metric.get()[1] == 0.5


def test_own_metrics():
    class Bias(mx.metric.EvalMetric):
        """Written for MXNet: it knows the local account only."""

        def __init__(self):
            super().__init__("bias")

        def update(self, labels, preds):
            for label, pred in zip(labels, preds):
                self.sum_metric += (pred - label).asnumpy().sum()
                self.num_inst += label.size

    mx.metric.register(Bias)
    mx.metric.alias("own_bias")(Bias)
    for name in ("bias", "own_bias"):
        metric = mx.metric.create(name)
        metric.update([nd([1, 2])], [nd([2, 3])])
        assert metric.get() == ("bias", 1.0) == metric.get_global()


@pytest.mark.parametrize("kind", ["Accuracy", "F1", "PCC", "TopKAccuracy", "CrossEntropy", "MAE"])
def test_different_numbers_are_refused(kind):
    metric = getattr(mx.metric, kind)(**ARGUMENTS.get(kind, {}))
    with pytest.raises(MXNetError, match="1.*2") as caught:
        metric.update([nd([1])], [nd([1]), nd([2])])
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: mx.metric.F1().update([nd([0, 1, 2])], [nd(np.eye(3))]), "two classes"),
        (lambda: mx.metric.CrossEntropy().update([nd([0, 1])], [nd(np.eye(3))]), "do not fit"),
        (lambda: mx.metric.Perplexity(None).update([nd([0, 1])], [nd(np.eye(3))]), "do not fit"),
        (lambda: mx.metric.Perplexity(None, axis=1).update([nd([0, 1])], [nd([0.5, 0.5])]), "no axis 1"),
        (lambda: mx.metric.TopKAccuracy(), "Accuracy"),
        (lambda: mx.metric.F1(average="mean"), "micro"),
        (lambda: mx.metric.PearsonCorrelation(average="mean"), "micro"),
        (lambda: mx.metric.EvalMetric("x").update([], []), "EvalMetric"),
        (lambda: mx.metric.check_label_shapes(nd([1, 2]), nd([[1, 2]]), shape=True), "shape"),
    ],
)
def test_errors_name_the_trouble(call, word):
    with pytest.raises(MXNetError, match=word):
        call()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["mae", "mse", "rmse", "ce", "nll_loss", "perplexity", "loss"])
def test_half_precision_is_added_up_in_float32(name, dtype):
    n, rs = 5000, np.random.RandomState(0)
    few = name in ("ce", "nll_loss", "perplexity")
    label = nd(rs.randint(0, 2, n) if few else rs.rand(n))
    pred = nd(rs.dirichlet([1, 1], n) if few else 30 * rs.rand(n)).astype(dtype)
    found = []
    for p in (pred, pred.astype("float32")):
        metric = mx.metric.create(name, **({"ignore_label": None} if name == "perplexity" else {}))
        metric.update([label], [p])
        found.append(metric.get()[1])
    assert found[0] == found[1]


def test_custom_metrics_get_what_was_predicted():
    seen = []
    mx.metric.np(lambda label, pred: seen.append(pred.dtype) or 0.0).update([nd([1])], [nd([1]).astype("float16")])
    assert seen == [np.float16]


@pytest.mark.parametrize(
    "dtype, label, pred",
    [("int8", [10, 100], [20, 120]), ("int32", [0, 0], [100000, 300000]), ("uint8", [20, 120], [0, 130])],
)
@pytest.mark.parametrize("name", ["mae", "mse", "rmse"])
def test_errors_of_whole_numbers_do_not_overflow(name, dtype, label, pred):
    metric = mx.metric.create(name)
    metric.update([mx.nd.array(label, dtype=dtype)], [mx.nd.array(pred, dtype=dtype)])
    d = np.array(label, "f8") - pred
    want = {"mae": np.abs(d).mean(), "mse": (d * d).mean(), "rmse": (d * d).mean() ** 0.5}[name]
    assert metric.get()[1] == pytest.approx(want, rel=1e-12)
