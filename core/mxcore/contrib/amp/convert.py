"""Graphs in mixed precision: casts are put in where operators compute in another dtype than their inputs have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ... import ndarray as nd
from ..._core import infer, tables
from ..._core.errors import MXNetError, suggest, warn
from ..._core.graph import Node, topo
from ...base import error
from ...composing import beside
from ...symbol import Symbol, outputs
from ...symbol.inference import TYPE_CODES, dtype_of
from ...symbol.writing import uncast
from .rules import FLOAT32, TARGETS, WIDEST, Rules, is_narrowing

__all__ = ["convert_bucketing_module", "convert_hybrid_block", "convert_model", "convert_symbol"]

Entry = tuple[Node, int]
_CODES = {name: str(code) for code, name in TYPE_CODES.items()}
_NAMES = ("target_dtype_ops", "fp32_ops")


def _label(e: Entry) -> str:
    n, i = e
    return n.name if n.op is None else f"{n.name}_{outputs.told(n, i)}"


class _Conversion:
    """One walk over a graph; `dtypes` holds what is certain of the new entries."""

    def __init__(self, rules: Rules, excluded: frozenset[str], offline: frozenset[int]) -> None:
        self.rules, self.excluded, self.offline = rules, excluded, offline
        self.new: dict[int, Node] = {}
        self.dtypes: dict[Entry, Any] = {}
        self._cast: dict[tuple[Entry, Any], Entry] = {}

    def entry(self, e: Entry) -> Entry:
        """The new graph's entry for one of the old, whose casts are passed over."""
        n, i = uncast(e)
        return self.new[id(n)], i

    def cast(self, e: Entry, to: Any) -> Entry:
        """The entry in a dtype: itself where that is certain, else behind a cast, one for all who ask."""
        if self.dtypes.get(e) == to:
            return e
        if (e, to) not in self._cast:
            op, attrs = tables.ops.get("amp_cast"), {} if e[0].op is None else beside(e[0])
            node = Node(op, op.parse({"dtype": to.name}), [e], f"{_label(e)}_amp_cast_{to.name}", attrs)
            self._cast[e, to] = node, 0
            self.dtypes[node, 0] = to
        return self._cast[e, to]

    def visit(self, n: Node) -> None:
        if n.op is None:
            self.new[id(n)] = n
            if id(n) in self.offline:
                self.dtypes[n, 0] = self.rules.dtype
            return
        if n.op.facet("precision_cast"):
            return
        ins = [self.entry(e) for e in n.inputs]
        excluded = n.name in self.excluded
        kind = FLOAT32 if excluded else self.rules.of(n.op, n.params)
        places = self.rules.castable(n.op, n.params)
        if kind is FLOAT32:
            # Variables are float32 unless they say otherwise, which is theirs to know; MXNet casts them where a
            # condition decides.
            sure = not excluded and self.rules.is_conditional(n.op)
            for i in places:
                if sure or ins[i][0].op is not None or id(ins[i][0]) in self.offline:
                    ins[i] = self.cast(ins[i], FLOAT32)
        elif kind is WIDEST:
            self._widest(n, ins, places)
        elif kind is not None:
            for i in places:
                ins[i] = self.cast(ins[i], kind)
        else:
            self._fitting(n, ins, places)
        forward = n.forward and self.new[id(n.forward)]
        same = all(a == b for a, b in zip(ins, n.inputs)) and forward is n.forward
        node = self.new[id(n)] = n if same else Node(n.op, n.params, ins, n.name, n.attrs, forward)
        found = self._outputs(node, ins) if kind is None or kind is WIDEST else [kind] * node.n_out
        self.dtypes.update({(node, i): t for i, t in enumerate(found) if t is not None})

    def _widest(self, n: Node, ins: list[Entry], places: list[int]) -> None:
        # What is there in float32 already counts as that.
        known = {FLOAT32 if (ins[i], FLOAT32) in self._cast else self.dtypes.get(ins[i]) for i in places}
        if all(is_narrowing(t) for t in known):
            if FLOAT32 in known:
                for i in places:
                    ins[i] = self.cast(ins[i], FLOAT32)
            return
        op = tables.ops.get("amp_multicast")
        node = Node(
            op,
            op.parse({"num_outputs": len(places)}),
            [ins[i] for i in places],
            f"{_label(ins[places[0]])}_amp_multicast",
            beside(n),
        )
        for j, i in enumerate(places):
            ins[i] = node, j

    def _fitting(self, n: Node, ins: list[Entry], places: list[int]) -> None:
        """An operator without a rule gets its inputs as they are, but for those that do not go with the others."""
        known = [self.dtypes.get(e) for e in ins]
        # What operators make of data alone may be float32 as well as anything else.
        likely = [FLOAT32 if t is None and e[0].op is not None else t for t, e in zip(known, ins)]
        try:
            wanted = infer.op_dtypes(n.op, n.params, known)[0]
            infer.op_dtypes(n.op, n.params, likely)
        except MXNetError:
            if len({t for t in likely if is_narrowing(t)}) > 1:
                for i in places:
                    if is_narrowing(likely[i]):
                        ins[i] = self.cast(ins[i], FLOAT32)
            return
        like = n.params._sig.like
        for i in places:
            if ins[i][0].op is None and i not in like and wanted[i] == self.rules.dtype != known[i]:
                ins[i] = self.cast(ins[i], self.rules.dtype)

    def _outputs(self, n: Node, ins: list[Entry]) -> list[Any]:
        known = [self.dtypes.get(e) for e in ins]
        if not any(known):
            return []
        try:
            return list(infer.op_dtypes(n.op, n.params, known)[1])
        except MXNetError:
            return []


def _checked_names(where: str, what: str, names: Any, known: Iterable[str]) -> frozenset[str]:
    if names is None:
        return frozenset()
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(n, str) for n in names):
        raise error(AssertionError, f"{where}: {what} must be a list of names, got {names!r}")
    known = [*known]
    for n in names:
        if n not in known:
            warn(f"{where}: {what} names {n!r}, which the symbol does not have{suggest(n, known)}")
    return frozenset(names)


def convert_symbol(
    sym: Symbol,
    target_dtype: Any = "float16",
    target_dtype_ops: Any = None,
    fp32_ops: Any = None,
    conditional_fp32_ops: Any = None,
    excluded_sym_names: Any = None,
    data_names: Any = None,
    cast_optional_params: bool = False,
) -> Symbol:
    """A symbol that computes what another does, with some operators in a narrow dtype and the others in float32.

    Parameters
    ----------
    sym : Symbol
    target_dtype : {'float16', 'bfloat16'}
    target_dtype_ops, fp32_ops : list of str, optional
        Operators that compute in the narrow dtype, and in float32; by default those of ``amp.lists``.
    conditional_fp32_ops : list of (str, str, list of str), optional
        (operator, parameter, values for which it computes in float32).
    excluded_sym_names : list of str, optional
        Nodes that compute in float32, by their names.
    data_names : list of str, optional
        Variables that are no parameters. With them, all others say their dtype in the result (``__dtype__``).
    cast_optional_params : bool
        Parameters that only the narrow dtype is asked of are declared in it, instead of being cast whenever they are
        used. Only with `data_names`.

    Returns
    -------
    Symbol
        Outputs are float32. A symbol that was converted already is converted anew: its casts are passed over.

    Raises
    ------
    MXNetError
        (also AssertionError) for arguments of other kinds, names of no operator, an operator in two lists. Names that
        the symbol does not have give a warning.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.amp.convert_symbol``, names of the casts included. `tojson` and `save`
    leave casts out unless told otherwise (``remove_amp_cast=False``).

    Examples
    --------
    >>> import mxcore as mx
    >>> fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    >>> net = mx.sym.exp(fc, name="e")
    >>> [n for n in mx.contrib.amp.convert_symbol(net).get_internals().list_outputs() if "amp_cast" in n]
    ['data_amp_cast_float16_output', 'fc_weight_amp_cast_float16_output', 'fc_output_amp_cast_float32_output']
    """
    return _convert(
        "convert_symbol",
        sym,
        target_dtype,
        target_dtype_ops,
        fp32_ops,
        conditional_fp32_ops,
        excluded_sym_names,
        data_names,
        cast_optional_params,
    )


def _convert(
    where: str,
    sym: Any,
    target_dtype: Any,
    narrow: Any,
    float32: Any,
    conditional: Any,
    excluded: Any,
    data_names: Any,
    offline: bool,
) -> Symbol:
    if not isinstance(sym, Symbol):
        raise error(AssertionError, f"{where}: the first argument must be a Symbol, got {type(sym).__name__}")
    rules = Rules(where, target_dtype, narrow, float32, conditional, _NAMES)
    nodes = topo(sym._heads)
    data = _checked_names(where, "data_names", data_names, sym.list_inputs())
    nodes_out = _checked_names(where, "excluded_sym_names", excluded, [n.name for n in nodes])
    params = [n for n in nodes if n.op is None and n.name not in data] if data_names is not None else []
    walk = _Conversion(
        rules, nodes_out, _only_narrow(rules, nodes, nodes_out, {id(n) for n in params}) if offline else frozenset()
    )
    for n in nodes:
        walk.visit(n)
    heads = [walk.cast(walk.entry(e), FLOAT32) for e in sym._heads]
    return Symbol(_declared(heads, {id(n) for n in params}, walk.offline, rules.target))


def _only_narrow(rules: Rules, nodes: Iterable[Node], excluded: frozenset[str], params: set[int]) -> frozenset[int]:
    """The parameters that nothing but operators of the narrow dtype read."""
    yes: set[int] = set()
    no: set[int] = set()
    for n in nodes:
        if n.op is None or n.op.facet("precision_cast"):
            continue
        narrow = n.name not in excluded and rules.of(n.op, n.params) is rules.dtype
        places = set(rules.castable(n.op, n.params))
        for i, e in enumerate(n.inputs):
            (yes if narrow and i in places else no).add(id(uncast(e)[0]))
    return frozenset((yes - no) & params)


def _declared(heads: list[Entry], params: set[int], narrow: frozenset[int], target: str) -> list[Entry]:
    """The graph with variables that say their dtypes: parameters, and those that said one before."""
    swap: dict[int, Node] = {}
    for n in topo(heads):
        if n.op is not None:
            inputs = [(swap[id(m)], i) for m, i in n.inputs]
            forward = n.forward and swap[id(n.forward)]
            same = all(a is b for (a, _), (b, _) in zip(inputs, n.inputs)) and forward is n.forward
            swap[id(n)] = n if same else Node(n.op, n.params, inputs, n.name, n.attrs, forward)
            continue
        said = n.attrs.get("__dtype__")
        swap[id(n)] = n
        if id(n) in params or said is not None:
            name = target if id(n) in narrow else _wide(said)
            if (code := _CODES.get(name, name)) != said:
                swap[id(n)] = Node(None, None, (), n.name, {**n.attrs, "__dtype__": code})
    return [(swap[id(n)], i) for n, i in heads]


def _wide(said: str | None) -> str:
    """The dtype that a variable said, but for narrow ones and what is none: float32."""
    if said is None:
        return "float32"
    name = TYPE_CODES.get(int(said), "float32") if said.isdecimal() else said
    return "float32" if name in TARGETS else name


def convert_model(
    sym: Symbol,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    target_dtype: Any = "float16",
    target_dtype_ops: Any = None,
    fp32_ops: Any = None,
    conditional_fp32_ops: Any = None,
    excluded_sym_names: Any = None,
    cast_optional_params: bool = False,
) -> tuple[Symbol, dict[str, Any], dict[str, Any]]:
    """A symbol and its parameters for mixed precision; see `convert_symbol`.

    Parameters
    ----------
    sym : Symbol
    arg_params, aux_params : dict of str to NDArray
        They stay as they are.
    target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names, cast_optional_params
        As for `convert_symbol`. Variables without a parameter are data.

    Returns
    -------
    sym, arg_params, aux_params : Symbol, dict, dict

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((2, 3))}
    >>> net, args, aux = mx.contrib.amp.convert_model(net, params, {}, cast_optional_params=True)
    >>> args["fc_weight"].dtype
    <class 'numpy.float16'>
    """
    if not isinstance(sym, Symbol):
        raise error(AssertionError, f"convert_model: the first argument must be a Symbol, got {type(sym).__name__}")
    for what, params in (("arg_params", arg_params), ("aux_params", aux_params)):
        bad: Any = not isinstance(params, Mapping) or [
            k for k, v in params.items() if not (isinstance(k, str) and isinstance(v, nd.NDArray))
        ]
        if bad:
            raise error(
                AssertionError,
                f"convert_model: {what} must be a dict of names and NDArrays, got "
                f"{type(params).__name__ if bad is True else f'something else at {bad[0]!r}'}",
            )
    data = [n for n in sym.list_inputs() if n not in arg_params and n not in aux_params]
    made = _convert(
        "convert_model",
        sym,
        target_dtype,
        target_dtype_ops,
        fp32_ops,
        conditional_fp32_ops,
        excluded_sym_names,
        data,
        cast_optional_params,
    )
    said = {
        n.name: dtype_of(n.attrs["__dtype__"]) for n in topo(made._heads) if n.op is None and "__dtype__" in n.attrs
    }
    args, aux = (
        {k: v.astype(said.get(k, v._data.dtype), copy=False) for k, v in params.items()}
        for params in (arg_params, aux_params)
    )
    return made, args, aux


def convert_hybrid_block(
    block: Any,
    target_dtype: Any = "float16",
    target_dtype_ops: Any = None,
    fp32_ops: Any = None,
    conditional_fp32_ops: Any = None,
    excluded_sym_names: Any = None,
    ctx: Any = None,
    cast_optional_params: bool = False,
) -> Any:
    """A block for mixed precision, with the parameters of a hybridised one.

    Parameters
    ----------
    block : HybridBlock
        Hybridised, and called once.
    target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names, cast_optional_params
        As for `convert_symbol`.
    ctx : Context or list of Context, optional
        Where the parameters shall live; where they do unless told.

    Returns
    -------
    SymbolBlock
        It has copies of the parameters.

    Raises
    ------
    MXNetError
        (also AssertionError) for anything but a HybridBlock; (also RuntimeError) if it was not hybridised and called
        before.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> net.hybridize()
    >>> _ = net(mx.nd.ones((1, 3)))
    >>> mx.contrib.amp.convert_hybrid_block(net)(mx.nd.ones((1, 3))).dtype
    <class 'numpy.float32'>
    """
    from ...gluon import HybridBlock, SymbolBlock

    if not isinstance(block, HybridBlock):
        raise error(AssertionError, f"convert_hybrid_block: block must be a HybridBlock, got {type(block).__name__}")
    graph = block._graph_now()  # another thread may drop it
    if graph is None:
        raise error(
            RuntimeError,
            "convert_hybrid_block: Please first call block.hybridize() "
            "and then run forward with this block at least once",
        )
    inputs, sym = graph.inputs, graph.out
    used = {*sym.list_inputs()}
    params = {**dict(block.collect_params().items()), **graph.params}
    arrays = {n: p._reduce() for n, p in params.items() if n in used}
    aux = {n: arrays.pop(n) for n in sym.list_auxiliary_states() if n in arrays}
    sym, args, aux = convert_model(
        sym,
        arrays,
        aux,
        target_dtype,
        target_dtype_ops,
        fp32_ops,
        conditional_fp32_ops,
        excluded_sym_names,
        cast_optional_params,
    )
    made = SymbolBlock(sym, list(inputs))
    contexts = ctx or next((p.list_ctx() for p in params.values() if p.name in used), None)
    for n, p in made.collect_params().items():
        value = args[n] if n in args else aux[n]
        p.cast(value._data.dtype)
        p.grad_req = params[n].grad_req
        p._load_init(value, contexts)
    return made


def convert_bucketing_module(
    bucketing_mod: Any,
    target_dtype: Any = "float16",
    target_dtype_ops: Any = None,
    fp32_ops: Any = None,
    conditional_fp32_ops: Any = None,
    excluded_sym_names: Any = None,
    cast_optional_params: bool = False,
) -> Any:
    """A BucketingModule for mixed precision, with the parameters of another one.

    Parameters
    ----------
    bucketing_mod : BucketingModule
        Bound, with parameters.
    target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names, cast_optional_params
        As for `convert_symbol`; names that only some buckets' symbols have are looked for in the others in vain.

    Returns
    -------
    BucketingModule
        Not bound yet; `bind` gives it the parameters.

    Raises
    ------
    MXNetError
        (also AssertionError) for anything else, or without parameters.
    """
    from ...module import BucketingModule

    if not isinstance(bucketing_mod, BucketingModule):
        raise error(
            AssertionError,
            f"convert_bucketing_module: bucketing_mod must be a BucketingModule, got {type(bucketing_mod).__name__}",
        )
    if not (bucketing_mod.binded and bucketing_mod.params_initialized):
        raise error(
            AssertionError,
            "convert_bucketing_module: the module must be bound "
            "and have parameters: call bind() and init_params() before",
        )
    args, aux = bucketing_mod.get_params()

    def sym_gen(key: Any) -> Any:
        sym, data, labels = bucketing_mod._call_sym_gen(key)
        excluded = (
            None
            if excluded_sym_names is None
            else [n for n in excluded_sym_names if n in {m.name for m in topo(sym._heads)}]
        )
        data_names = [n for n in sym.list_inputs() if n not in args and n not in aux]
        return (
            _convert(
                "convert_bucketing_module",
                sym,
                target_dtype,
                target_dtype_ops,
                fp32_ops,
                conditional_fp32_ops,
                excluded,
                data_names,
                cast_optional_params,
            ),
            data,
            labels,
        )

    default = bucketing_mod._call_sym_gen(bucketing_mod._default_bucket_key)[0]
    _, args, aux = convert_model(
        default,
        args,
        aux,
        target_dtype,
        target_dtype_ops,
        fp32_ops,
        conditional_fp32_ops,
        excluded_sym_names,
        cast_optional_params,
    )
    return BucketingModule.load_dict(
        {}, sym_gen, bucketing_mod._default_bucket_key, args, aux, **bucketing_mod._options
    )
