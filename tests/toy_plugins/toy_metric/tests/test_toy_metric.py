import math

import mxcore as mx


def test_values():
    metric = mx.metric.create("toy_metric", tolerance=0.5)
    metric.update([mx.nd.array([1, 2])], [mx.nd.array([[1.25], [3]])])
    metric.update([mx.nd.array([1, 2])], [mx.nd.array([[1], [2]])])
    assert metric.get() == ("toy_metric", 0.75)
    metric.reset()
    assert math.isnan(metric.get()[1])


def test_predictions_of_another_context():
    metric = mx.metric.create("toy_metric")
    metric.update([mx.nd.array([1, 2])], [mx.nd.array([1, 3], ctx=mx.cpu(1))])
    assert metric.get()[1] == 0.5


def test_beside_others():
    metric = mx.metric.create(["toy_metric", "mse"])
    metric.update([mx.nd.array([1, 2])], [mx.nd.array([1, 4])])
    assert dict(metric.get_name_value()) == {"toy_metric": 0.5, "mse": 2.0}


def test_its_settings_are_kept():
    config = mx.metric.create("toy_metric", tolerance=0.5).get_config()
    assert config["metric"] == "ToyMetric" and config["tolerance"] == 0.5
