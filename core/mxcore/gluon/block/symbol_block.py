"""`SymbolBlock`: a block made from a graph."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ..._core.params import as_dtype
from ...base import MXNetError, error
from ...drafts import read_pair
from ...ops.common.bodies import is_half
from ..parameter import ParameterDict
from ..utils import is_np_array
from .hybrid_block import HybridBlock
from .structure import flatten, is_symbol, regroup
from .tracing import Traced

if TYPE_CHECKING:
    from ...context import Context
    from ...symbol import Symbol

__all__ = ["SymbolBlock"]


class SymbolBlock(HybridBlock):
    """A block made from a symbol, e.g. of a loaded model or of an inner layer of one.

    Parameters
    ----------
    outputs : Symbol or list of Symbol
    inputs : Symbol or list of Symbol
        Variables of `outputs`; all other variables become parameters.
    params : ParameterDict or dict, optional
        Parameters to take by name.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.SymbolBlock``.

    Examples
    --------
    >>> import mxcore as mx
    >>> x = mx.sym.var('data')
    >>> y = mx.sym.FullyConnected(x, num_hidden=2, name='fc')
    >>> block = mx.gluon.SymbolBlock(y, x)
    >>> block.initialize()
    >>> block(mx.nd.ones((1, 3))).shape
    (1, 2)
    """

    def __init__(
        self,
        outputs: Symbol | Sequence[Symbol],
        inputs: Symbol | Sequence[Symbol],
        params: ParameterDict | dict[str, Any] | None = None,
    ) -> None:
        from ... import symbol

        super().__init__(prefix=None, params=None)
        ins: list[Any] = []
        outs: list[Any] = []
        in_format = flatten(inputs if isinstance(inputs, (list, tuple)) else [inputs], ins)
        if isinstance(outputs, (list, tuple)) and len(outputs) == 1:
            outputs = outputs[0]
        out_format = flatten(outputs, outs, "output")
        for leaf in ins:
            if not is_symbol(leaf) or leaf.get_children() is not None:
                raise error(AssertionError, f"Input symbols must be variable, but {leaf!r} is an output of operators")
        if not all(is_symbol(leaf) for leaf in outs):
            raise error(TypeError, "SymbolBlock: outputs must be symbols")
        out = outs[0] if len(outs) == 1 else symbol.Group(outs)
        if is_np_array():
            out = out.as_np_ndarray()
        self._made_of = ins, out, in_format, out_format
        self._clear_cached_op()
        names = {leaf.name for leaf in ins}
        given = {} if params is None else dict(params.items())
        full = ParameterDict("")
        for name, dtype, fixed in _variables(out, ins):
            if name in given:
                full.update({name: given[name]})
            elif name not in names:
                full.get(name, allow_deferred_init=True, dtype=dtype, grad_req="null" if fixed else "write")
        self._params = full
        common = len(os.path.commonprefix(list(full.keys())))
        self._reg_params = {name[common:] if len(full.keys()) > 1 else name: p for name, p in full.items()}

    def __repr__(self) -> str:
        ins, out, *_ = self._made_of
        return f"{type(self).__name__}(\n{out!r} : {len(ins)} -> {len(out.list_outputs())}\n)"

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clear_cached_op()

    def _forget_graph(self) -> None:
        # The graph is what this block is made of; only what was derived from it can go.
        super()._forget_graph()
        if "_made_of" in self.__dict__:
            self._traced_graph = Traced(*self._made_of, {})

    def _take_formats(self, **formats: Any) -> None:
        super()._take_formats(**formats)
        ins, out, *kept = self._made_of
        self._made_of = ins, out, *(formats.get(n, old) for n, old in zip(("in_format", "out_format"), kept))

    @staticmethod
    def imports(
        symbol_file: str,
        input_names: str | Sequence[str],
        param_file: str | None = None,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> SymbolBlock:
        """Make a block from a graph and a parameter file, as `HybridBlock.export` writes them.

        Parameters
        ----------
        symbol_file : str
        input_names : str or list of str
            Which variables are inputs.
        param_file : str, optional
        ctx : Context or list of Context, optional
            Where to put the parameters. By default the CPU.
        allow_missing, ignore_extra : bool, default False
            As for `Block.load_parameters`.

        Returns
        -------
        SymbolBlock
        """
        from ... import symbol

        names = [input_names] if isinstance(input_names, str) else input_names
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            raise error(
                TypeError, f"SymbolBlock.imports: input_names must be a name, or a list of names, got {input_names!r}"
            )

        def read(graph: str) -> SymbolBlock:
            out = symbol.load(graph)
            unknown = [n for n in names if n not in out.list_inputs()]
            if unknown:
                raise error(
                    ValueError,
                    f"SymbolBlock.imports: {symbol_file} has no variable {', '.join(map(repr, unknown))}; it has "
                    f"{', '.join(map(repr, out.list_inputs()[:10]))} …",
                )
            block = SymbolBlock(out, [symbol.var(n) for n in names])
            if param_file is not None:
                block.collect_params().load(
                    param_file, ctx, allow_missing, ignore_extra, cast_dtype=True, dtype_source="saved"
                )
            return block

        return read(symbol_file) if param_file is None else read_pair(symbol_file, param_file, read)

    def forward(self, x: Any, *args: Any) -> Any:
        """Run the graph on arrays, or compose it onto symbols."""
        if self._cached_op is not None and isinstance(x, nd.NDArray) or self._context_of((x, *args)) is not None:
            return self._call_cached_op(x, *args)
        return self._forward_symbol(x, *args)

    def _forward_symbol(self, *args: Any) -> Any:
        ins, out, in_format, out_format = self._made_of
        leaves: list[Any] = []
        given = flatten(args, leaves)
        if len(leaves) != len(ins):
            raise error(
                ValueError,
                f"SymbolBlock '{self.name}' has {len(ins)} inputs {[i.name for i in ins]}, structured as {in_format}; "
                f"it was called with {given} (0 is a symbol, -1 is None)",
            )
        used = set(out.list_inputs())
        whole = out(**{i.name: leaf for i, leaf in zip(ins, leaves) if i.name in used})
        return regroup(iter(whole), out_format)

    def cast(self, dtype: Any) -> None:
        """Cast all parameters to another dtype; those of batch normalisation stay float32 beside half precision."""
        self._clear_cached_op()
        kept = _normalising(self._made_of[1]) if is_half(as_dtype(dtype)) else ()
        for p in self.params.values():
            p.cast("float32" if p.name in kept else dtype)

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move all parameters to a context or list of contexts."""
        self.params.reset_ctx(ctx)


def _variables(out: Symbol, ins: Sequence[Symbol]) -> Iterator[tuple[str, Any, bool]]:
    """(name, dtype, whether it is an auxiliary state) of the variables of a graph; float32 where nothing decides."""
    hints = {i.name: i.attr("__dtype__") for i in ins}
    given = {i.name: "float32" for i in ins if hints[i.name] is None and i.name in out.list_inputs()}
    try:
        args, _, aux = out.infer_type_partial(**given)
    except MXNetError:  # an input of another type than float32
        args, _, aux = out.infer_type_partial()
    yield from ((name, dtype or "float32", False) for name, dtype in zip(out.list_arguments(), args))
    yield from ((name, dtype or "float32", True) for name, dtype in zip(out.list_auxiliary_states(), aux))


def _normalising(out: Symbol) -> set[str]:
    """Names of the parameters and states of batch normalisation in a graph: the inputs beside auxiliary states."""
    states = set(out.list_auxiliary_states())
    found: set[str] = set()
    for node in out.get_internals():
        inputs = node.get_children()
        names = [] if inputs is None else inputs.list_outputs()
        if states.intersection(names):
            found.update(names[1:])
    return found
