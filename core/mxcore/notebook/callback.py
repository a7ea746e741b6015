"""Callbacks of ``fit`` that log to Pandas and draw with Bokeh, as ``mxnet.notebook.callback``; both are optional."""

from __future__ import annotations

import datetime
import importlib
import time
from typing import Any

from ..base import error

__all__ = ["LiveBokehChart", "LiveLearningCurve", "LiveTimeSeries", "PandasLogger", "args_wrapper"]

_HOOKS = ("batch_end_callback", "eval_end_callback", "epoch_end_callback")


def _package(name: str, who: str) -> Any:
    """An optional package, or an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as e:
        top = name.partition(".")[0]
        raise error(
            ImportError, f"{who} needs {top} ({e}); pip install {top}, or pip install 'mxcore[notebook]'"
        ) from e


def _count(value: Any, who: str, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise error(ValueError, f"{who}: {what} must be a whole number from 1 on, got {value!r}")
    return value


class PandasLogger:
    """Log a training run to data frames: `train_df` every so many batches, `eval_df` and `epoch_df` every epoch.

    Parameters
    ----------
    batch_size : int
        Rows of a batch, for ``records_per_sec``.
    frequent : int
        Batches from one row of `train_df` to the next. The metric begins anew with each row.

    Raises
    ------
    MXNetError (ImportError)
        If Pandas is not installed.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``notebook.callback.PandasLogger``; its `epoch_cb` takes no arguments and therefore
    fails in ``fit``.

    Examples
    --------
    >>> import mxcore as mx
    >>> logger = mx.notebook.callback.PandasLogger(batch_size=2, frequent=1)  # doctest: +SKIP
    >>> mod.fit(data, num_epoch=2, **logger.callback_args())  # doctest: +SKIP
    >>> logger.train_df["accuracy"]  # doctest: +SKIP
    """

    def __init__(self, batch_size: int, frequent: int = 50) -> None:
        self._pandas = _package("pandas", "PandasLogger")
        self.batch_size = _count(batch_size, "PandasLogger", "batch_size")
        self.frequent = _count(frequent, "PandasLogger", "frequent")
        self._rows: dict[str, list[dict[str, Any]]] = {"train": [], "eval": [], "epoch": []}
        self.start_time = self.last_epoch_time = datetime.datetime.now()
        self.last_time = time.perf_counter()

    def _frame(self, name: str) -> Any:
        return self._pandas.DataFrame(self._rows[name])

    @property
    def train_df(self) -> Any:
        """A row every `frequent` batches."""
        return self._frame("train")

    @property
    def eval_df(self) -> Any:
        """A row an evaluation."""
        return self._frame("eval")

    @property
    def epoch_df(self) -> Any:
        """A row an epoch: when it ended, and how long it took."""
        return self._frame("epoch")

    @property
    def all_dataframes(self) -> dict[str, Any]:
        """The three frames: 'train', 'eval' and 'epoch'."""
        return {name: self._frame(name) for name in self._rows}

    def elapsed(self) -> datetime.timedelta:
        """Time since the logger was made."""
        return datetime.datetime.now() - self.start_time

    def append_metrics(self, metrics: dict[str, Any], df_name: str) -> None:
        """Add a row to a frame."""
        if df_name not in self._rows:
            raise error(ValueError, f"PandasLogger: df_name must be one of {[*self._rows]}, got {df_name!r}")
        self._rows[df_name].append(dict(metrics))

    def _process_batch(self, param: Any, dataframe: str) -> None:
        now = time.perf_counter()
        metrics: dict[str, Any] = {}
        if param.eval_metric is not None:
            metrics.update(param.eval_metric.get_name_value())
            param.eval_metric.reset()
        speed = self.frequent / max(now - self.last_time, 1e-9)
        metrics |= {
            "batches_per_sec": speed,
            "records_per_sec": speed * self.batch_size,
            "elapsed": self.elapsed(),
            "minibatch_count": param.nbatch,
            "epoch": param.epoch,
        }
        self.append_metrics(metrics, dataframe)
        self.last_time = now

    def train_cb(self, param: Any) -> None:
        """For the end of a batch."""
        if param.nbatch % self.frequent == 0:
            self._process_batch(param, "train")

    def eval_cb(self, param: Any) -> None:
        """For the end of an evaluation."""
        self._process_batch(param, "eval")

    def epoch_cb(self, *args: Any) -> None:
        """For the end of an epoch."""
        now = datetime.datetime.now()
        self.append_metrics({"elapsed": now - self.start_time, "epoch_time": now - self.last_epoch_time}, "epoch")
        self.last_epoch_time = now

    def callback_args(self) -> dict[str, Any]:
        """The arguments of ``fit`` that make it log."""
        return dict(zip(_HOOKS, (self.train_cb, self.eval_cb, self.epoch_cb)))


class LiveBokehChart:
    """A chart in a notebook that is drawn anew while a model trains; subclasses say what it shows.

    Parameters
    ----------
    pandas_logger : PandasLogger or None
        Where the data come from; None makes one of `batch_size` and `frequent`.
    metric_name : str
        The column to show.
    display_freq : float
        Seconds from one drawing to the next, at least.
    batch_size, frequent : int
        Of the logger that is made.

    Raises
    ------
    MXNetError (ImportError)
        If Bokeh is not installed.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``notebook.callback.LiveBokehChart``.
    """

    def __init__(
        self,
        pandas_logger: PandasLogger | None,
        metric_name: str | None,
        display_freq: float = 10,
        batch_size: int | None = None,
        frequent: int = 50,
    ) -> None:
        self._io = _package("bokeh.io", type(self).__name__)
        self._plotting = _package("bokeh.plotting", type(self).__name__)
        self.pandas_logger = (
            PandasLogger(1 if batch_size is None else batch_size, frequent) if pandas_logger is None else pandas_logger
        )
        self.metric_name = metric_name
        self.display_freq = display_freq
        self.last_update = time.time()
        self._io.output_notebook(hide_banner=True)
        self.handle = self.setup_chart()

    def setup_chart(self) -> Any:
        """Draw the chart for the first time and give back its handle."""
        raise error(
            TypeError, f"{type(self).__name__} shows nothing: a chart must define setup_chart() and update_chart_data()"
        )

    def update_chart_data(self, *args: Any) -> None:
        """Give the chart its new data."""
        raise error(
            TypeError, f"{type(self).__name__} shows nothing: a chart must define setup_chart() and update_chart_data()"
        )

    def _show(self, figure: Any) -> Any:
        return self._io.show(figure, notebook_handle=True)

    def interval_elapsed(self) -> bool:
        """Whether it is time to draw again."""
        return time.time() - self.last_update > self.display_freq

    def _push_render(self) -> None:
        self._io.push_notebook(handle=self.handle)
        self.last_update = time.time()

    def _do_update(self) -> None:
        self.update_chart_data()
        self._push_render()

    def batch_cb(self, param: Any) -> None:
        """For the end of a batch."""
        if self.interval_elapsed():
            self._do_update()

    def eval_cb(self, param: Any) -> None:
        """For the end of an evaluation: draws at once."""
        self._do_update()

    def callback_args(self) -> dict[str, Any]:
        """The arguments of ``fit`` that make it draw."""
        return dict(zip(_HOOKS, (self.batch_cb, self.eval_cb)))


class LiveTimeSeries(LiveBokehChart):
    """A value over time: each call of `update_chart_data` adds a point.

    Parameters
    ----------
    **fig_params
        Options of Bokeh's ``figure``, as ``plot_width``, ``title``.
    """

    def __init__(self, **fig_params: Any) -> None:
        self.fig_params = {"x_axis_type": "datetime", "x_axis_label": "elapsed time", **fig_params}
        self.start_time = datetime.datetime.now()
        self.x_axis_val: list[float] = []
        self.y_axis_val: list[float] = []
        super().__init__(None, None)

    def setup_chart(self) -> Any:
        """Draw the empty chart."""
        figure = self._plotting.figure(**self.fig_params)
        self._line = figure.line([], [])
        return self._show(figure)

    def elapsed(self) -> float:
        """Milliseconds since the chart was made, Bokeh's unit of time."""
        return (datetime.datetime.now() - self.start_time).total_seconds() * 1e3

    def update_chart_data(self, value: float) -> None:
        """Add a value and draw."""
        self.x_axis_val.append(self.elapsed())
        self.y_axis_val.append(value)
        self._line.data_source.data = {"x": self.x_axis_val, "y": self.y_axis_val}
        self._push_render()


class LiveLearningCurve(LiveBokehChart):
    """A metric on training and validation data over time, while a network trains.

    Parameters
    ----------
    metric_name : str
        The metric's name, as ``'accuracy'``.
    display_freq : float
        Seconds from one drawing to the next, at least.
    frequent : int
        Batches from one point of the training curve to the next.
    """

    def __init__(self, metric_name: str, display_freq: float = 10, frequent: int = 50) -> None:
        self.frequent = _count(frequent, "LiveLearningCurve", "frequent")
        self.start_time = datetime.datetime.now()
        self._data: dict[str, dict[str, list[Any]]] = {name: {"x": [], "y": []} for name in ("train", "eval")}
        super().__init__(None, metric_name, display_freq, frequent=frequent)

    def setup_chart(self) -> Any:
        """Draw the empty chart."""
        figure = self._plotting.figure(
            x_axis_type="datetime", x_axis_label="training time", y_axis_label=self.metric_name
        )
        self._lines = {
            name: figure.line([], [], legend_label=name, line_dash=dash)
            for name, dash in (("train", "dotted"), ("eval", "solid"))
        }
        return self._show(figure)

    def _process_batch(self, param: Any, df_name: str) -> None:
        values = dict(param.eval_metric.get_name_value()) if param.eval_metric is not None else {}
        if self.metric_name not in values:
            raise error(
                ValueError, f"LiveLearningCurve: there is no metric {self.metric_name!r}; the metrics are {[*values]}"
            )
        self._data[df_name]["x"].append((datetime.datetime.now() - self.start_time).total_seconds() * 1e3)
        self._data[df_name]["y"].append(values[self.metric_name])
        param.eval_metric.reset()

    def batch_cb(self, param: Any) -> None:
        """For the end of a batch."""
        if param.nbatch % self.frequent == 0:
            self._process_batch(param, "train")
        super().batch_cb(param)

    def eval_cb(self, param: Any) -> None:
        """For the end of an evaluation: draws at once."""
        self._process_batch(param, "eval")
        super().eval_cb(param)

    def update_chart_data(self) -> None:
        """Give the curves their points."""
        for name, line in self._lines.items():
            line.data_source.data = {k: list(v) for k, v in self._data[name].items()}


def args_wrapper(*args: Any) -> dict[str, list[Any]]:
    """The arguments of ``fit`` for several loggers and charts.

    Parameters
    ----------
    *args
        Objects with ``callback_args()``.

    Returns
    -------
    dict of str to list of callable
    """
    made: dict[str, list[Any]] = {}
    for callbacks in args:
        for name, call in callbacks.callback_args().items():
            made.setdefault(name, []).append(call)
    return made
