"""Loggers and charts of training runs."""

import datetime

import numpy as np
import pytest

import mxcore as mx
from mxcore.notebook import callback


@pytest.fixture
def fitted():
    """fit(**callbacks): train a small module for two epochs of ten batches; gives it back."""

    def fit(**callbacks):
        x = np.random.RandomState(0).rand(100, 5).astype("float32")
        y = (x[:, 0] > 0.5).astype("float32")
        net = mx.sym.SoftmaxOutput(
            mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc"), name="softmax"
        )
        mod = mx.mod.Module(net)
        mod.fit(
            mx.io.NDArrayIter(x, y, 10),
            eval_data=mx.io.NDArrayIter(x[:20], y[:20], 10),
            num_epoch=2,
            eval_metric=["acc", "ce"],
            initializer=mx.init.One(),
            **callbacks,
        )
        return mod

    return fit


@pytest.fixture
def drawn(monkeypatch):
    """What Bokeh was asked to show, in this order."""
    io = pytest.importorskip("bokeh.io")
    asked = []
    monkeypatch.setattr(io, "output_notebook", lambda **options: None)
    monkeypatch.setattr(io, "show", lambda figure, notebook_handle: asked.append(("show", figure)) or figure)
    monkeypatch.setattr(io, "push_notebook", lambda handle: asked.append(("push", handle)))
    return asked


def test_a_run_is_logged_as_mxnet_logs_it(fitted):
    pytest.importorskip("pandas")
    logger = callback.PandasLogger(10, frequent=3)
    fitted(**logger.callback_args())
    train = logger.train_df
    # MXNet 1.9.1 on the same data and weights.
    assert train["accuracy"].round(6).tolist() == [0.3, 0.5, 0.366667, 0.7, 0.3, 0.666667, 0.933333, 0.7]
    assert train["cross-entropy"].round(5).tolist() == [
        0.69315,
        0.69341,
        0.6932,
        0.69109,
        0.69494,
        0.69129,
        0.68866,
        0.68617,
    ]
    assert train["minibatch_count"].tolist() == [0, 3, 6, 9] * 2 and train["epoch"].tolist() == [0] * 4 + [1] * 4
    assert (train["records_per_sec"] / train["batches_per_sec"]).round(6).tolist() == [10] * 8
    assert logger.eval_df["cross-entropy"].round(5).tolist() == [0.69037, 0.68767] and logger.eval_df[
        "minibatch_count"
    ].tolist() == [2, 2]
    epochs = logger.epoch_df
    assert list(epochs.columns) == ["elapsed", "epoch_time"] and epochs["epoch_time"].sum() == epochs["elapsed"].iloc[1]
    assert set(logger.all_dataframes) == {"train", "eval", "epoch"} and isinstance(logger.elapsed(), datetime.timedelta)


def test_rows_of_ones_own():
    pytest.importorskip("pandas")
    logger = callback.PandasLogger(4)
    row = {"loss": 1.5}
    logger.append_metrics(row, "eval")
    row["loss"] = 2
    assert logger.eval_df["loss"].tolist() == [1.5] and len(logger.train_df) == 0
    with pytest.raises(ValueError, match="df_name must be one of .*, got 'test'"):
        logger.append_metrics(row, "test")
    with pytest.raises(ValueError, match="frequent must be a whole number from 1 on, got 0"):
        callback.PandasLogger(4, frequent=0)


def test_a_learning_curve_is_drawn(fitted, drawn):
    chart = callback.LiveLearningCurve("accuracy", display_freq=-1, frequent=5)
    fitted(**chart.callback_args())
    assert [what for what, _ in drawn] == ["show"] + ["push"] * 22  # after each batch, and after each evaluation
    train, valid = (chart._lines[n].data_source.data for n in ("train", "eval"))
    assert len(train["y"]) == 4 and len(valid["y"]) == 2 and list(train["x"]) == sorted(train["x"])
    assert [round(v, 6) for v in train["y"]] == [0.3, 0.46, 0.3, 0.76]
    assert drawn[0][1].xaxis.axis_label == "training time"


def test_a_curve_of_an_unknown_metric_is_refused(fitted, drawn):
    with pytest.raises(ValueError, match="there is no metric 'loss'; the metrics are .*'accuracy'"):
        fitted(**callback.LiveLearningCurve("loss").callback_args())


def test_a_time_series_is_drawn(drawn):
    series = callback.LiveTimeSeries(title="Loss")
    for value in (3.0, 2.0):
        series.update_chart_data(value)
    data = series._line.data_source.data
    assert list(data["y"]) == [3, 2] and data["x"][0] <= data["x"][1] and drawn[0][1].title.text == "Loss"
    assert [what for what, _ in drawn] == ["show", "push", "push"]


def test_a_chart_of_ones_own(drawn, fitted):
    pytest.importorskip("pandas")

    class Rows(callback.LiveBokehChart):
        def setup_chart(self):
            self.seen = []
            return self._show(self._plotting.figure())

        def update_chart_data(self):
            self.seen.append(len(self.pandas_logger.train_df))

    logger = callback.PandasLogger(10, frequent=5)
    chart = Rows(logger, "accuracy", display_freq=3600)
    args = callback.args_wrapper(logger, chart)
    assert {k: len(v) for k, v in args.items()} == {
        "batch_end_callback": 2,
        "eval_end_callback": 2,
        "epoch_end_callback": 1,
    }
    fitted(**args)
    assert chart.seen == [2, 4] and not chart.interval_elapsed()
    with pytest.raises(TypeError, match="must define setup_chart"):
        callback.LiveBokehChart(logger, "accuracy")


@pytest.mark.parametrize(
    "package, make",
    [("pandas", lambda: callback.PandasLogger(1)), ("bokeh", lambda: callback.LiveLearningCurve("accuracy"))],
)
def test_missing_packages_are_named(monkeypatch, package, make):
    import importlib

    found = importlib.import_module

    def without(name, *args):
        if name.split(".")[0] == package:
            raise ImportError(f"No module named '{package}'")
        return found(name, *args)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ImportError, match=f"needs {package} .*pip install"):
        make()
