"""`SymbolBlock`: a block made from a graph."""

from __future__ import annotations

import os

from ...base import error
from ..parameter import DeferredInitializationError, ParameterDict
from .hybrid_block import HybridBlock
from .structure import flatten, is_symbol

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

    def __init__(self, outputs, inputs, params=None):
        from ... import symbol

        super().__init__(prefix=None, params=None)
        ins, outs = [], []
        self._in_format = flatten(inputs if isinstance(inputs, (list, tuple)) else [inputs], ins)
        if isinstance(outputs, (list, tuple)) and len(outputs) == 1:
            outputs = outputs[0]
        out_format = flatten(outputs, outs, "output")
        for leaf in ins:
            if not is_symbol(leaf) or len(leaf.get_internals().list_outputs()) != 1:
                raise error(
                    AssertionError, f"Input symbols must be variable, but {leaf!r} is an output of operators"
                )
        if not all(is_symbol(leaf) for leaf in outs):
            raise error(TypeError, "SymbolBlock: outputs must be symbols")
        out = outs[0] if len(outs) == 1 else symbol.Group(outs)
        if out_format == 0 and len(out.list_outputs()) > 1:
            out_format = [0] * len(out.list_outputs())
        self._graph = ins, out, out_format

        names = {leaf.name for leaf in ins}
        aux = set(out.list_auxiliary_states())
        given = {} if params is None else dict(params.items())
        full = ParameterDict("")
        for name in (*out.list_arguments(), *out.list_auxiliary_states()):
            if name in names:
                continue
            if name in given:
                full.update({name: given[name]})
            else:
                full.get(name, allow_deferred_init=True, grad_req="null" if name in aux else "write")
        self._params = full
        common = len(os.path.commonprefix(list(full.keys())))
        self._reg_params = {name[common:] if len(full.keys()) > 1 else name: p for name, p in full.items()}

    def __repr__(self):
        ins, out, _ = self._graph
        return f"{type(self).__name__}(\n{out!r} : {len(ins)} -> {len(out.list_outputs())}\n)"

    def __getstate__(self):
        ins, out, structure = self._graph
        state = {**self.__dict__, "_interpreter": None}
        state["_graph"] = [i.name for i in ins], out.tojson(), structure
        return state

    def __setstate__(self, state):
        from ... import symbol

        names, text, structure = state["_graph"]
        state = {**state, "_graph": ([symbol.var(n) for n in names], symbol.load_json(text), structure)}
        self.__dict__.update(state)

    def _clear_cached_op(self):
        # The graph is what this block is made of; only what was derived from it can go.
        self._interpreter = None
        self.__dict__.setdefault("_graph", None)
        self.__dict__.setdefault("_in_format", None)

    def _get_graph(self, *args):
        return self._graph

    @staticmethod
    def imports(symbol_file, input_names, param_file=None, ctx=None, allow_missing=False, ignore_extra=False):
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

        out = symbol.load(symbol_file)
        names = [input_names] if isinstance(input_names, str) else list(input_names)
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

    def _forward_eager(self, ctx, *args):
        try:
            return self._interpret(ctx, *args)
        except DeferredInitializationError:
            self._deferred_infer_shape(*args)
            return self._interpret(ctx, *args)

    def _forward_symbol(self, *args):
        ins, out, structure = self._graph
        leaves = []
        flatten(args, leaves)
        whole = out(**{i.name: leaf for i, leaf in zip(ins, leaves)})
        return whole if structure == 0 else [whole[i] for i in range(len(whole.list_outputs()))]

    def cast(self, dtype):
        for p in self.params.values():
            p.cast(dtype)

    def reset_ctx(self, ctx):
        """Move all parameters to a context or list of contexts."""
        self.params.reset_ctx(ctx)
