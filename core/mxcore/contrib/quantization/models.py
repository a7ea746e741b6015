"""Symbols and their parameters over eight bits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ... import ndarray as nd
from ..._core.errors import suggest, warn
from ...base import error
from ...context import Context, cpu
from ...io import DataIter
from ...symbol import Symbol, load
from .calibration import HistogramCollector, MinMaxCollector, collect, thresholds, watched
from .graphs import SUFFIXES, Plan, calibrated, quantized

__all__ = ["calib_graph", "quantize_graph", "quantize_model", "quantize_model_mkldnn"]

_CPU = cpu()
_DTYPES = ("int8", "uint8", "auto")
_MODES = ("full", "smart")
_GRANULARITIES = ("tensor-wise", "channel-wise")
_CALIBRATIONS = ("none", "naive", "entropy")


def _one_of(where: str, what: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise error(ValueError, f"{where}: unknown {what} {value!r}, expected {', '.join(map(repr, allowed))}")


def _names(where: str, what: str, value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(n, str) for n in value):
        raise error(ValueError, f"{where}: {what} must be a list of names, got {value!r}")
    return value


def _symbol(where: str, sym: Any) -> Symbol:
    if isinstance(sym, str):
        return load(sym)
    if not isinstance(sym, Symbol):
        raise error(ValueError, f"{where}: sym must be a Symbol or the path of one, got {type(sym).__name__}")
    return sym


def single_context(where: str, ctx: Any) -> Context:
    """The context, if it is one."""
    if not isinstance(ctx, Context):
        raise error(ValueError, f"{where}: ctx must be one Context, got {ctx!r}")
    return ctx


def plan(
    where: str,
    sym: Any,
    params: Iterable[str],
    excluded_sym_names: Any,
    excluded_op_names: Any,
    calib_mode: Any,
    quantized_dtype: Any,
    quantize_mode: Any,
    quantize_granularity: Any,
    logger: Any,
) -> Plan:
    """The quantised graph of a symbol; what stays in float is told to the logger, or in a warning."""
    sym = _symbol(where, sym)
    _one_of(where, "quantized_dtype", quantized_dtype, _DTYPES)
    _one_of(where, "quantize_mode", quantize_mode, _MODES)
    _one_of(where, "quantize_granularity", quantize_granularity, _GRANULARITIES)
    excluded = _names(where, "excluded_sym_names", excluded_sym_names)
    known = [n.removesuffix("_output") for n in sym.get_internals().list_outputs()]
    known += [s.name for s in sym.get_internals()]
    for name in excluded:
        if name not in known:
            warn(f"{where}: excluded_sym_names has {name!r}, which the symbol does not have{suggest(name, known)}")
    found = quantized(
        sym,
        excluded=excluded,
        excluded_operators=_names(where, "excluded_op_names", excluded_op_names),
        offline=[*params],
        dtype=quantized_dtype,
        mode=quantize_mode,
        uncalibrated=calib_mode in (None, "none"),
    )
    if logger:
        for name, why in found.left.items():
            logger.info("%s stays in float32: %s", name, why)
    elif refused := {n: w for n, w in found.left.items() if not w.startswith("it is ")}:
        told = "; ".join(f"{n} ({w})" for n, w in refused.items())
        warn(f"{where}: some layers cannot be quantised and stay in float32: {told}")
    return found


def quantized_params(where: str, qsym: Symbol, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a quantised graph takes: those over eight bits with their ranges, the others as they are.

    Raises
    ------
    MXNetError
        (also TypeError) for one that is not float32, (also ValueError) for one with values that are no numbers.
    """
    found: dict[str, Any] = {}
    for name in qsym.list_arguments():
        base = next((name.removesuffix(s) for s in SUFFIXES if name.endswith(s)), "")
        if name in params:
            found[name] = params[name]
        elif base in params and f"{base}{SUFFIXES[0]}" not in found:
            value = params[base]
            if value.dtype != np.float32:
                raise error(
                    TypeError,
                    f"{where}: parameter {base} is {np.dtype(value.dtype).name}; only float32 is quantised: cast it "
                    "with astype('float32'), or exclude its layer (excluded_sym_names)",
                )
            low, high = nd.min(value), nd.max(value)
            if not np.isfinite([low.asscalar(), high.asscalar()]).all():
                raise error(ValueError, f"{where}: parameter {base} has values that are no numbers, or infinite")
            parts = nd.contrib.quantize(value, low, high, out_type="int8")
            found.update(zip((base + s for s in SUFFIXES), parts))
    return found


def collector_of(where: str, calib_mode: Any, layers: Sequence[str], custom: Any, logger: Any) -> Any:
    """What looks at the values of layers in a mode of calibration; None where nothing does."""
    if calib_mode in (None, "none"):
        return None
    if calib_mode == "naive":
        return MinMaxCollector([*layers], logger)
    if calib_mode == "entropy":
        return HistogramCollector([*layers], logger)
    if calib_mode == "customize":
        if not hasattr(custom, "collect"):
            raise error(
                ValueError,
                f"{where}: calib_mode 'customize' needs a LayerOutputCollector with a method collect(name, array), got "
                f"{custom!r}",
            )
        return custom
    raise error(
        ValueError, f"{where}: unknown calib_mode {calib_mode!r}, expected 'none', 'naive', 'entropy' or 'customize'"
    )


def ranges_seen(where: str, calib_mode: Any, collector: Any, quantized_dtype: str, logger: Any) -> Any:
    """The ranges of layers by what a collector has seen."""
    wanted = "hist_dict" if calib_mode == "entropy" else "min_max_dict"
    seen = getattr(collector, wanted, None)
    if not isinstance(seen, Mapping):
        raise error(
            ValueError, f"{where}: calib_mode {calib_mode!r} needs a collector with {wanted}, got {collector!r}"
        )
    if not seen:
        raise error(
            ValueError,
            f"{where}: the collector has seen no layer; run data through the model with its collect as monitor "
            "(set_monitor_callback(collector.collect, monitor_all=True))",
        )
    return thresholds(seen, quantized_dtype, logger) if calib_mode == "entropy" else seen


def calibrate(
    where: str,
    sym: Symbol,
    layers: Sequence[str],
    params: tuple[Any, Any],
    data: Any,
    names: tuple[Any, Any],
    ctx: Context,
    collector: Any,
    examples: Any,
    logger: Any,
) -> None:
    """Run the part of a model that layers depend on over data, while a collector looks at them.

    `params` are arguments and auxiliary states, `names` those of data and labels; the model may have more of each.
    """
    from ...module import Module

    part = watched(sym, layers)
    needed = {*part.list_inputs()}
    args, aux = ({n: v for n, v in some.items() if n in needed} for some in params)
    labels = [n for n in names[1] or () if n in needed]
    module = Module(part, names[0], labels or None, context=ctx)
    module.bind(data.provide_data, data.provide_label if labels else None, for_training=False)
    module.set_params(args, aux)
    collect(where, module, data, collector, layers, examples, logger)


def quantize_model(
    sym: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    data_names: Sequence[str] = ("data",),
    label_names: Sequence[str] = ("softmax_label",),
    ctx: Any = _CPU,
    excluded_sym_names: Any = None,
    excluded_op_names: Any = None,
    calib_mode: str = "entropy",
    calib_data: Any = None,
    num_calib_examples: Any = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> tuple[Symbol, dict[str, Any], Mapping[str, Any]]:
    """A model over eight bits, from one in float32.

    Convolutions and fully connected layers, and what lies between them, compute with eight bits; what has no such form
    stays in float, and so do the model's inputs and outputs. Sums of products are exact, in int32.

    Parameters
    ----------
    sym : Symbol or str
        The model, or its file.
    arg_params, aux_params : dict of str to NDArray
        float32. They stay as they are.
    data_names, label_names : sequence of str
        The inputs of the model, for calibration.
    ctx : Context
        Where calibration runs.
    excluded_sym_names, excluded_op_names : list of str, optional
        Layers by their names, and operators, that stay in float.
    calib_mode : {'none', 'naive', 'entropy'}
        How the ranges of values are found: anew at every run; as the least and greatest that calibration saw; or as
        those that lose least, by the Kullback-Leibler divergence of the quantised distribution.
    calib_data : DataIter
        What calibration runs over.
    num_calib_examples : int, optional
        Calibration stops after so many.
    quantized_dtype : {'int8', 'uint8', 'auto'}
        Of values; 'auto' is uint8 where calibration saw nothing negative. Weights are int8.
    quantize_mode : {'smart', 'full'}
        Quantise what lies between layers that gain by it, or all that can be.
    quantize_granularity : {'tensor-wise', 'channel-wise'}
        One range for each parameter; MXNet has others with oneDNN's subgraphs only.
    logger : optional
        Is told what stays in float, and why.

    Returns
    -------
    sym, arg_params, aux_params : Symbol, dict, dict

    Raises
    ------
    MXNetError
        (also ValueError) for arguments of other kinds, calibration without data, data that has nothing left; (also
        TypeError) for parameters that are not float32. Layers that cannot be quantised are named in a warning, or to
        the logger.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.quantization.quantize_model``, names included; what differs is in
    docs/differences.md.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    >>> weight = {"fc_weight": mx.nd.array([[0.5, -1], [1, 0]])}
    >>> data = mx.io.NDArrayIter(mx.nd.array([[1, 2], [3, 4]]), batch_size=2)
    >>> qnet, args, aux = mx.contrib.quantization.quantize_model(net, weight, {}, calib_mode="naive", calib_data=data)
    >>> args["fc_weight_quantize"].asnumpy().tolist()
    [[64, -127], [127, 0]]
    >>> qnet.eval(data=mx.nd.array([[1, 2]]), **args)[0].round().asnumpy().tolist()
    [[-2.0, 1.0]]
    """
    where = "quantize_model"
    single_context(where, ctx)
    _one_of(where, "calib_mode", calib_mode or "none", _CALIBRATIONS)
    sym = _symbol(where, sym)
    made = plan(
        where,
        sym,
        arg_params,
        excluded_sym_names,
        excluded_op_names,
        calib_mode,
        quantized_dtype,
        quantize_mode,
        quantize_granularity,
        logger,
    )
    qsym = made.symbol
    collector = collector_of(where, calib_mode, made.layers, None, logger)
    if collector is not None:
        check_data(where, calib_mode, calib_data)
    if collector is not None and made.layers:
        calibrate(
            where,
            sym,
            made.layers,
            (arg_params, aux_params),
            calib_data,
            (data_names, label_names),
            ctx,
            collector,
            num_calib_examples,
            logger,
        )
        qsym = calibrated(qsym, ranges_seen(where, calib_mode, collector, quantized_dtype, logger))
    return qsym, quantized_params(where, qsym, arg_params), aux_params


def check_data(where: str, calib_mode: Any, data: Any) -> None:
    """Raise ValueError unless there is an iterator over data to calibrate with."""
    if data is None:
        raise error(ValueError, f"{where}: calib_data must be provided when calib_mode={calib_mode!r}")
    if not isinstance(data, DataIter):
        raise error(ValueError, f"{where}: calib_data must be a DataIter, got {type(data).__name__}")


def quantize_model_mkldnn(
    sym: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    data_names: Sequence[str] = ("data",),
    label_names: Sequence[str] = ("softmax_label",),
    ctx: Any = _CPU,
    excluded_sym_names: Any = None,
    excluded_op_names: Any = None,
    calib_mode: str = "entropy",
    calib_data: Any = None,
    num_calib_examples: Any = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> tuple[Symbol, dict[str, Any], Mapping[str, Any]]:
    """`quantize_model` for CPUs, where MXNet joins layers for oneDNN: another graph of the same meaning.

    Parameters
    ----------
    sym, arg_params, aux_params, data_names, label_names, excluded_sym_names, excluded_op_names, calib_mode,
    calib_data, num_calib_examples
        As for `quantize_model`.
    ctx : Context
        A CPU.
    quantized_dtype, quantize_mode, quantize_granularity, logger
        As for `quantize_model`.

    Returns
    -------
    sym, arg_params, aux_params : Symbol, dict, dict

    Raises
    ------
    MXNetError
        (also ValueError) for another device, and as `quantize_model`.
    """
    where = "quantize_model_mkldnn"
    if single_context(where, ctx).device_type != "cpu":
        raise error(ValueError, f"{where}: ctx must be a CPU, got {ctx}; quantize_model takes any device")
    return quantize_model(
        sym,
        arg_params,
        aux_params,
        data_names,
        label_names,
        ctx,
        excluded_sym_names,
        excluded_op_names,
        calib_mode,
        calib_data,
        num_calib_examples,
        quantized_dtype,
        quantize_mode,
        quantize_granularity,
        logger,
    )


def quantize_graph(
    sym: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    ctx: Any = _CPU,
    excluded_sym_names: Any = None,
    excluded_op_names: Any = None,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    LayerOutputCollector: Any = None,
    logger: Any = None,
) -> tuple[Symbol, dict[str, Any], Mapping[str, Any], Any]:
    """A quantised graph that is calibrated later, by `calib_graph`, and what collects for that.

    Parameters
    ----------
    sym, arg_params, aux_params, ctx, excluded_sym_names, excluded_op_names, quantized_dtype, quantize_mode,
    quantize_granularity, logger
        As for `quantize_model`.
    calib_mode : {'none', 'naive', 'entropy', 'customize'}
    LayerOutputCollector
        With 'customize': an object whose method ``collect(name, array)`` sees the values of the model in float and
        whose `min_max_dict` holds (least, greatest) by name afterwards.

    Returns
    -------
    sym, arg_params, aux_params, collector : Symbol, dict, dict, object
        `collector.collect` is a monitor for an executor of the model in float
        (``set_monitor_callback(collector.collect, monitor_all=True)``). None with calib_mode 'none'.

    Raises
    ------
    MXNetError
        As `quantize_model`.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.contrib.quantization import calib_graph, quantize_graph
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    >>> params = {"fc_weight": mx.nd.array([[0.5, -1], [1, 0]])}
    >>> qnet, qargs, aux, collector = quantize_graph(net, params, {}, calib_mode="naive")
    >>> exe = net.bind(mx.cpu(), {"data": mx.nd.ones((1, 2)), **params})
    >>> exe.set_monitor_callback(collector.collect, monitor_all=True)
    >>> _ = exe.forward()
    >>> collector.min_max_dict
    {'data': (1.0, 1.0), 'fc_output': (-0.5, 1.0)}
    >>> qnet, qargs, aux = calib_graph(qnet, params, aux, collector, calib_mode="naive")
    """
    where = "quantize_graph"
    single_context(where, ctx)
    made = plan(
        where,
        sym,
        arg_params,
        excluded_sym_names,
        excluded_op_names,
        calib_mode,
        quantized_dtype,
        quantize_mode,
        quantize_granularity,
        logger,
    )
    collector = collector_of(where, calib_mode, made.layers, LayerOutputCollector, logger)
    return made.symbol, quantized_params(where, made.symbol, arg_params), aux_params, collector


def calib_graph(
    qsym: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    collector: Any,
    calib_mode: str = "entropy",
    quantized_dtype: str = "int8",
    logger: Any = None,
) -> tuple[Symbol, dict[str, Any], Mapping[str, Any]]:
    """A quantised graph with the ranges that a collector has seen.

    Parameters
    ----------
    qsym : Symbol
        Of `quantize_graph`.
    arg_params, aux_params : dict of str to NDArray
        Those of the model in float.
    collector
        Of `quantize_graph`, after data went through the model.
    calib_mode : {'naive', 'entropy', 'customize'}
    quantized_dtype : {'int8', 'uint8', 'auto'}
    logger : optional

    Returns
    -------
    sym, arg_params, aux_params : Symbol, dict, dict

    Raises
    ------
    MXNetError
        (also ValueError) for another mode, or a collector that has seen nothing.
    """
    where = "calib_graph"
    _one_of(where, "calib_mode", calib_mode, ("naive", "entropy", "customize"))
    _one_of(where, "quantized_dtype", quantized_dtype, _DTYPES)
    made = calibrated(_symbol(where, qsym), ranges_seen(where, calib_mode, collector, quantized_dtype, logger))
    return made, quantized_params(where, made, arg_params), aux_params
