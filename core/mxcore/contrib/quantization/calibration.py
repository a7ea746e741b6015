"""What calibration sees: the least and greatest values of layers, or histograms, and the ranges that follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...base import error
from ...symbol import Group, Symbol

__all__ = ["HistogramCollector", "MinMaxCollector", "collect", "combine_histogram", "thresholds", "watched"]

#: Bins of a histogram, an odd number: zero lies in the middle of one.
BINS = 8001
#: A histogram grows by whole bins up to so many times its width, and is counted anew beyond.
_GROWTH = 32


def combine_histogram(
    old_hist: tuple[Any, Any, float, float, float], arr: Any, new_min: float, new_max: float, new_th: float
) -> tuple[np.ndarray, np.ndarray, float, float, float]:
    """Count an array into a histogram symmetric around zero, which grows by whole bins where numbers lie outside.

    Parameters
    ----------
    old_hist : tuple
        (counts, edges, minimum, maximum, threshold) so far: the bins reach from minus the threshold to the threshold.
    arr : numpy.ndarray
    new_min, new_max, new_th : float
        Minimum, maximum and largest magnitude of `arr`.

    Returns
    -------
    tuple
        Like `old_hist`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.quantization.combine_histogram``.

    Examples
    --------
    >>> import numpy as np
    >>> old = (np.array([1, 2, 3]), np.array([-3, -1, 1, 3]), 0.0, 3.0, 3.0)
    >>> counts, edges, *rest = combine_histogram(old, np.array([1.0, 2.0, 4.0]), 1, 4, 4)
    >>> counts.tolist(), edges.tolist(), rest
    ([0, 1, 2, 5, 1], [-5.0, -3.0, -1.0, 1.0, 3.0, 5.0], [0.0, 4, 5.0])
    """
    hist, _, old_min, old_max, old_th = old_hist
    more = 0
    if not old_th:  # nothing but zeros so far: they are in the middle
        old_th, hist = new_th, np.sum(hist) * (np.arange(len(hist)) == len(hist) // 2)
    if new_th > old_th:
        step = 2 * old_th / len(hist)
        more = int((new_th - old_th) // step + 1)
        old_th = old_th + more * step
    counts, edges = _counted(arr, len(hist) + 2 * more, old_th)
    counts[more : len(counts) - more] += np.asarray(hist)
    return counts, edges, min(old_min, new_min), max(old_max, new_max), old_th


def _counted(values: Any, bins: int, threshold: float, weights: Any = None) -> tuple[Any, Any]:
    """A histogram from minus a threshold to the threshold, which has to be wide enough for so many bins."""
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            counts, edges = np.histogram(values, bins, (-threshold, threshold), weights=weights)
        except IndexError:  # twice the largest float32 is infinite in float32
            wide = np.asarray(values, np.float64), bins, (-float(threshold), float(threshold))
            counts, edges = np.histogram(*wide, weights=weights)
        except ValueError as e:
            raise error(ValueError, f"values up to {threshold:g} cannot be counted in {bins} bins: {e}") from None
    return counts, edges


def _widened(old: tuple[Any, Any, float, float, float], threshold: float) -> tuple[Any, Any, float, float, float]:
    """The same counts in as many bins up to a threshold that lies far beyond the old one."""
    hist, edges, low, high, _ = old
    middles = (np.asarray(edges[1:]) + np.asarray(edges[:-1])) / 2
    counts, edges = _counted(middles, BINS, threshold, hist)
    return counts.astype(np.int64), edges, low, high, threshold


class _Collector:
    """Sees values by their names, and looks at those of `include_layer`."""

    def __init__(self, include_layer: Collection[str] | None = None, logger: Any = None) -> None:
        self.include_layer, self.logger = include_layer, logger

    def collect(self, name: str, arr: Any) -> None:
        """Look at a value; an executor's monitor.

        Parameters
        ----------
        name : str
        arr : NDArray

        Raises
        ------
        MXNetError
            (also ValueError) for values that are no numbers.
        """
        if self.include_layer is not None and name not in self.include_layer:
            return
        values = arr.asnumpy()
        if not values.size:
            return
        low, high = float(values.min()), float(values.max())
        if not np.isfinite([low, high]).all():
            raise error(
                ValueError, f"calibration: {name} has values from {low} to {high}; the range of a layer must be finite"
            )
        self.see(name, values, low, high)

    def see(self, name: str, values: np.ndarray, low: float, high: float) -> None:
        """Note what a value has told."""
        raise NotImplementedError


class MinMaxCollector(_Collector):
    """The least and greatest values of layers: naive calibration.

    Parameters
    ----------
    include_layer : collection of str, optional
        The values that are looked at, all unless told.
    logger : optional

    Attributes
    ----------
    min_max_dict : dict of str to (float, float)

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.contrib.quantization.calibration import MinMaxCollector
    >>> seen = MinMaxCollector()
    >>> seen.collect("fc1_output", mx.nd.array([-1, 3]))
    >>> seen.min_max_dict
    {'fc1_output': (-1.0, 3.0)}
    """

    def __init__(self, include_layer: Collection[str] | None = None, logger: Any = None) -> None:
        super().__init__(include_layer, logger)
        self.min_max_dict: dict[str, tuple[float, float]] = {}

    def see(self, name: str, values: np.ndarray, low: float, high: float) -> None:
        a, b = self.min_max_dict.get(name, (low, high))
        self.min_max_dict[name] = min(a, low), max(b, high)
        if self.logger:
            self.logger.debug("%s lies between %f and %f", name, low, high)


class HistogramCollector(_Collector):
    """Histograms of layers: calibration by entropy.

    Parameters
    ----------
    include_layer : collection of str, optional
        The values that are looked at, all unless told.
    logger : optional

    Attributes
    ----------
    hist_dict : dict of str to tuple
        (counts, edges, minimum, maximum, threshold), see `combine_histogram`.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.contrib.quantization.calibration import HistogramCollector
    >>> seen = HistogramCollector()
    >>> seen.collect("fc1_output", mx.nd.array([-1, 3]))
    >>> counts, edges, *rest = seen.hist_dict["fc1_output"]
    >>> int(counts.sum()), len(edges), rest
    (2, 8002, [-1.0, 3.0, 3.0])
    """

    def __init__(self, include_layer: Collection[str] | None = None, logger: Any = None) -> None:
        super().__init__(include_layer, logger)
        self.hist_dict: dict[str, tuple[Any, Any, float, float, float]] = {}

    def see(self, name: str, values: np.ndarray, low: float, high: float) -> None:
        top = max(abs(low), abs(high))
        old = self.hist_dict.get(name)
        if old is None:
            self.hist_dict[name] = (*_counted(values, BINS, top), low, high, top)
        else:
            if top > _GROWTH * old[-1]:
                old = _widened(old, top)
            self.hist_dict[name] = combine_histogram(old, values, low, high, top)
        if self.logger:
            self.logger.debug("counted %d values of %s", values.size, name)


def thresholds(
    histograms: Mapping[str, tuple[Any, Any, float, float, float]], quantized_dtype: str, logger: Any = None
) -> dict[str, tuple[float, float]]:
    """The range of each layer that loses least, by the Kullback-Leibler divergence of what is left.

    Parameters
    ----------
    histograms : mapping of str to tuple
        Of `HistogramCollector`.
    quantized_dtype : {'int8', 'uint8', 'auto'}
        Layers without negative values get a range from 0 unless it is int8.
    logger : optional

    Returns
    -------
    dict of str to (float, float)
    """
    found = {}
    for name, (counts, edges, low, *_) in histograms.items():
        positive = low >= 0 and quantized_dtype in ("auto", "uint8")
        arrays = (nd.array(np.asarray(v), dtype="float32") for v in (counts, edges))
        threshold, divergence = nd.contrib.calibrate_entropy(*arrays, num_quantized_bins=511 if positive else 255)
        top = threshold.asscalar()
        found[name] = (0.0 if positive else -float(top), float(top))
        if logger:
            logger.debug("%s: threshold %f, divergence %f", name, top, divergence.asscalar())
    return found


def watched(symbol: Symbol, layers: Sequence[str]) -> Symbol:
    """The part of a graph that computes these values, as its outputs."""
    inside = symbol.get_internals()
    at = {name: i for i, name in enumerate(inside.list_outputs())}
    return Group([inside[at[name]] for name in layers])


def collect(
    where: str,
    module: Any,
    data: Any,
    collector: Any,
    layers: Sequence[str] | None,
    examples: int | None,
    logger: Any = None,
) -> int:
    """Run a bound module over data while a collector looks on; the number of examples that it saw.

    Parameters
    ----------
    where : str
        Who asks, for errors.
    module : Module
        Of what `watched` gives for the layers, or of the whole model where the collector wants to see all values.
    data : DataIter
    collector
        Its method ``collect(name, array)`` is called with each value.
    layers : sequence of str or None
        The names of the module's outputs; None: the collector monitors the module.
    examples : int, optional
        Where to stop.
    logger : optional

    Raises
    ------
    MXNetError
        (also ValueError) for data that gives nothing; for a number of examples that is none.
    """
    if examples is not None and (isinstance(examples, bool) or not isinstance(examples, Integral) or examples < 1):
        raise error(
            ValueError, f"{where}: num_calib_examples must be a whole number above 0, or None, got {examples!r}"
        )
    if layers is None:
        [executor] = module._exec_group.execs
        executor.set_monitor_callback(collector.collect, monitor_all=True)
    seen = batches = 0
    for batch in data:
        module.forward(batch, is_train=False)
        if layers is not None:
            for name, value in zip(layers, module.get_outputs()):
                collector.collect(name, value)
        batches += 1
        seen += data.batch_size
        if examples is not None and seen >= examples:
            break
    if not batches:
        raise error(ValueError, f"{where}: calib_data gave no batch; reset it, or give one that has data left")
    if logger:
        logger.info("calibrated with %d batches of %d", batches, data.batch_size)
    return seen
