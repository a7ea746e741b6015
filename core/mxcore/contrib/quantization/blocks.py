"""Blocks of Gluon over eight bits."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from ... import ndarray as nd
from ...base import error
from ...context import cpu
from ...io import DataBatch, DataDesc, DataIter
from ...symbol import Symbol
from .calibration import collect, watched
from .graphs import calibrated
from .models import collector_of, plan, quantized_params, ranges_seen, single_context

__all__ = ["quantize_net", "quantize_net_v2"]

_CPU = cpu()


class _Batches(DataIter):
    """Batches of anything that can be iterated over, such as a DataLoader, as far as the model takes their arrays."""

    def __init__(self, where: str, data: Any) -> None:
        try:
            batches = iter(data)
            first = next(batches, None)
        except TypeError as e:
            raise error(
                TypeError, f"{where}: calib_data must be a DataIter or iterable, got {type(data).__name__}"
            ) from e
        if first is None:
            raise error(ValueError, f"{where}: calib_data gives no batch")
        self.example = _arrays(first)
        if not self.example or not all(isinstance(x, nd.NDArray) for x in self.example):
            raise error(
                TypeError,
                f"{where}: calib_data must give arrays, or lists of them, got {type(first).__name__} {first!r:.80}",
            )
        super().__init__(self.example[0].shape[0])
        self.source, self.count = data, len(self.example)
        # A generator can be asked once only: what was taken from it to see its shapes comes first.
        self.batches: Iterator[Any] = itertools.chain([first], batches)
        self.begun = False

    def reset(self) -> None:
        """Begin anew."""
        if self.begun:
            self.batches, self.begun = iter(self.source), False

    def next(self) -> DataBatch:
        """The next batch."""
        self.begun = True
        return DataBatch(_arrays(next(self.batches))[: self.count], [])


def _arrays(batch: Any) -> list[Any]:
    return [*batch] if isinstance(batch, (list, tuple)) else [batch]


class _Renamed(DataIter):
    """An iterator whose data goes by the names of a model's inputs."""

    def __init__(self, source: DataIter, count: int) -> None:
        super().__init__(source.batch_size)
        self.source, self.count = source, count

    def reset(self) -> None:
        """Begin anew."""
        self.source.reset()

    def next(self) -> DataBatch:
        """The next batch."""
        batch = self.source.next()
        return DataBatch(batch.data[: self.count], [], batch.pad)


def _shapes(where: str, data_shapes: Any, calib_data: Any) -> list[tuple[int, ...]]:
    """The shapes of inputs that are told, or those of a batch, labels too."""
    if data_shapes:
        return [tuple(getattr(d, "shape", d[1] if isinstance(d[0], str) else d)) for d in data_shapes]
    if isinstance(calib_data, _Batches):
        return [a.shape for a in calib_data.example]
    if calib_data is not None:
        return [tuple(d.shape) for d in calib_data.provide_data]
    raise error(ValueError, f"{where}: data_shapes is required where there is no calib_data")


def _taken(network: Any, given: int) -> int:
    """How many of some arrays the call of a block takes, by its signature."""
    from ...gluon import HybridBlock, SymbolBlock
    from ...gluon.nn import HybridSequential

    if isinstance(network, SymbolBlock):
        return min(given, len(network._cached_graph[0]))
    if isinstance(network, HybridSequential) and len(network):
        return _taken(network[0], given)
    hybrid = type(network).forward is HybridBlock.forward
    found = inspect.signature(network.hybrid_forward if hybrid else network.forward).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in found):
        return given
    # A parameter is left out where a layer does without, as convolutions without bias: it has None in its place.
    own = {*network._reg_params, *(p.name for p in found if p.default is None and _lacks(network, p.name))}
    places = [p for p in found if p.kind is not p.KEYWORD_ONLY and p.name not in own]
    return min(given, sum(p.kind is not p.VAR_KEYWORD for p in places) - hybrid)  # less F


def _lacks(network: Any, name: str) -> bool:
    """Whether a block has None for something."""
    return getattr(network, name, network) is None


def _graph(network: Any, shapes: list[tuple[int, ...]]) -> tuple[list[Any], Symbol, dict[str, Any]]:
    """Inputs, graph and parameters of a hybridised block, called with as many arrays as it takes."""
    arrays = tuple(nd.zeros(s) for s in shapes[: _taken(network, len(shapes))])
    with network._alone(arrays):  # another thread may hybridise it, too, and drop the graph
        network.hybridize()
        network.optimize_for(*arrays)
        graph = network._traced_graph
    network(*arrays)  # what only a run finds wrong is told before anything is calibrated
    return [*graph.inputs], graph.out, {**dict(network.collect_params().items()), **graph.params}


def _excluded(sym: Symbol, names: Iterable[str] | None, parts: Iterable[str] | None) -> list[str]:
    """Layers by their names, and by parts of their names."""
    for what, given in (("exclude_layers", names), ("exclude_layers_match", parts)):
        if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
            raise error(TypeError, f"quantize_net: {what} must be a list of names, got {given!r}")
    layers: list[Any] = [s.name for s in sym.get_internals()]
    return [*(names or ()), *dict.fromkeys(n for part in parts or () for n in layers if part in n)]


def _block(sym: Symbol, inputs: list[Any], args: Any, aux: Any, ctx: Any) -> Any:
    from ...gluon import SymbolBlock

    made = SymbolBlock(sym, inputs)
    for n, p in made.collect_params().items():
        value = args[n] if n in args else aux[n]
        p.cast(value._data.dtype)
        p.grad_req = "null"
        p._load_init(value, ctx)
    return made


def quantize_net_v2(
    network: Any,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    exclude_layers: Any = None,
    exclude_layers_match: Any = None,
    exclude_operators: Any = None,
    calib_data: Any = None,
    data_shapes: Any = None,
    calib_mode: str = "none",
    num_calib_examples: Any = None,
    ctx: Any = _CPU,
    LayerOutputCollector: Any = None,
    logger: Any = None,
) -> Any:
    """A block over eight bits, from one in float32.

    Parameters
    ----------
    network : HybridBlock
        With parameters; it is hybridised.
    quantized_dtype, quantize_mode, quantize_granularity, num_calib_examples, logger
        As for `quantize_model`.
    exclude_layers, exclude_layers_match, exclude_operators : list of str, optional
        Layers by their names in the graph, by parts of these, and operators, that stay in float.
    calib_data : DataIter, DataLoader or iterable, optional
        Batches; arrays beyond the block's inputs, such as labels, are left aside.
    data_shapes : list of DataDesc or of tuple of int, optional
        What the block takes, where there is no calib_data.
    calib_mode : {'none', 'naive', 'entropy', 'customize'}
    ctx : Context
        Where calibration runs and the new block's parameters are.
    LayerOutputCollector
        As for `quantize_graph`.

    Returns
    -------
    SymbolBlock

    Raises
    ------
    MXNetError
        (also ValueError) for arguments of other kinds, calibration without data, neither data nor shapes; (also
        TypeError) for parameters that are not float32.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.quantization.quantize_net_v2``, without oneDNN's subgraphs.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize(mx.init.One())
    >>> data = [mx.nd.array([[1, 2, 3]]), mx.nd.array([[0, 1, 0]])]
    >>> qnet = mx.contrib.quantization.quantize_net_v2(net, calib_data=data, calib_mode="naive")
    >>> qnet(mx.nd.array([[1, 1, 1]])).round().asnumpy().tolist()
    [[3.0, 3.0]]
    """
    where = "quantize_net_v2"
    from ...gluon import HybridBlock

    if not isinstance(network, HybridBlock):
        raise error(ValueError, f"{where}: network must be a HybridBlock, got {type(network).__name__}")
    single_context(where, ctx)
    if calib_data is None and calib_mode not in (None, "none"):
        raise error(ValueError, f"{where}: calib_data must be provided when calib_mode={calib_mode!r}")
    if calib_data is not None and not isinstance(calib_data, DataIter):
        calib_data = _Batches(where, calib_data)
    shapes = _shapes(where, data_shapes, calib_data)
    inputs, sym, params = _graph(network, shapes)
    used = {*sym.list_inputs()}
    args = {n: p._reduce() for n, p in params.items() if n in used}
    aux = {n: args.pop(n) for n in sym.list_auxiliary_states() if n in args}
    made = plan(
        where,
        sym,
        args,
        _excluded(sym, exclude_layers, exclude_layers_match),
        exclude_operators,
        calib_mode,
        quantized_dtype,
        quantize_mode,
        quantize_granularity,
        logger,
    )
    qsym = made.symbol
    collector = collector_of(where, calib_mode, made.layers, LayerOutputCollector, logger)
    if collector is not None and made.layers:
        from ...module import Module

        layers = None if calib_mode == "customize" else made.layers
        part = sym if layers is None else watched(sym, layers)
        needed = {*part.list_inputs()}
        names = [x.name for x in inputs]
        module = Module(part, names, None, context=ctx)
        module.bind([DataDesc(n, s) for n, s in zip(names, shapes)], for_training=False)
        module.set_params({n: v for n, v in args.items() if n in needed}, {n: v for n, v in aux.items() if n in needed})
        calib_data.reset()
        collect(where, module, _Renamed(calib_data, len(names)), collector, layers, num_calib_examples, logger)
        qsym = calibrated(qsym, ranges_seen(where, calib_mode, collector, quantized_dtype, logger))
    return _block(qsym, inputs, quantized_params(where, qsym, args), aux, ctx)


def quantize_net(
    network: Any,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    exclude_layers: Any = None,
    exclude_layers_match: Any = None,
    exclude_operators: Any = None,
    calib_data: Any = None,
    data_shapes: Any = None,
    calib_mode: str = "none",
    num_calib_examples: Any = None,
    ctx: Any = _CPU,
    logger: Any = None,
) -> Any:
    """`quantize_net_v2` under its first name, with a warning.

    Parameters
    ----------
    network, quantized_dtype, quantize_mode, exclude_layers, exclude_layers_match, exclude_operators, calib_data,
    data_shapes, calib_mode
        As for `quantize_net_v2`.
    num_calib_examples, ctx, logger
        As for `quantize_net_v2`.

    Returns
    -------
    SymbolBlock
    """
    warnings.warn("quantize_net will be deprecated after MXNet 2.0: use quantize_net_v2", stacklevel=2)
    return quantize_net_v2(
        network,
        quantized_dtype,
        quantize_mode,
        "tensor-wise",
        exclude_layers,
        exclude_layers_match,
        exclude_operators,
        calib_data,
        data_shapes,
        calib_mode,
        num_calib_examples,
        ctx,
        None,
        logger,
    )
