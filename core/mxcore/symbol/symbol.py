"""The class Symbol: heads of a graph with names, shapes inferred on demand, bound to arrays for execution."""
from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import attribute
from .. import name as naming
from .._core import binding, infer, registry
from .._core.arith import COMPARISONS, OPERATORS, Arithmetic
from .._core.errors import error, suggest
from .._core.graph import Graph, Node, topo, variable
from .._core.op import Op
from .._core.params import as_dtype, dtype_name
from ..ndarray.methods import OP_METHODS

__all__ = ["Symbol", "Variable", "var", "Group", "compose"]

Entry = tuple[Node, int]
#: Attributes that files wrap in underscores.
HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")


class Symbol(Arithmetic):
    """One or several outputs of a graph.

    Made by :func:`Variable` and the operators of ``mx.sym``; nothing is computed until it is bound to arrays.

    Examples
    --------
    >>> import mxcore as mx
    >>> a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    >>> c = a + b
    >>> c.list_arguments()
    ['a', 'b']
    """

    __slots__ = ("_heads",)

    def __init__(self, heads: Sequence[Entry]) -> None:
        self._heads = list(heads)

    # -- parts -------------------------------------------------------------------------------------------------
    @property
    def name(self) -> str | None:
        """Name of the node; None for a group of several."""
        nodes = {id(n): n for n, _ in self._heads}
        return next(iter(nodes.values())).name if len(nodes) == 1 else None

    def _graph(self) -> Graph:
        return Graph(self._heads)

    def _variables(self) -> tuple[list[Node], list[Node]]:
        """(arguments, auxiliary states) in order of first use."""
        g = self._graph()
        aux = g.aux_names()
        found = g.variables()
        return [n for n in found if n.name not in aux], [n for n in found if n.name in aux]

    def list_arguments(self) -> list[str]:
        """Names of the arguments, in order of first use."""
        return [n.name for n in self._variables()[0]]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states, in order of first use."""
        return [n.name for n in self._variables()[1]]

    def list_inputs(self) -> list[str]:
        """Names of arguments and auxiliary states, in order of first use."""
        return [n.name for n in self._graph().variables()]

    def list_outputs(self) -> list[str]:
        """Names of the outputs: ``<node>_<output>``, or the name of a variable."""
        return [output_name(e) for e in self._heads]

    @property
    def num_outputs(self) -> int:
        """How many outputs."""
        return len(self._heads)

    def __len__(self) -> int:
        return len(self._heads)

    def __iter__(self) -> Iterator[Symbol]:
        return (Symbol([e]) for e in self._heads)

    def __getitem__(self, index: Any) -> Symbol:
        if isinstance(index, slice):
            return Symbol(self._heads[index])
        if isinstance(index, str):
            names = self.list_outputs()
            matches = [i for i, n in enumerate(names) if n == index]
            if not matches:
                raise error(ValueError, f"no output is named {index!r}{suggest(index, names)}")
            if len(matches) > 1:
                raise error(ValueError, f"{len(matches)} outputs are named {index!r}; use an index")
            return Symbol([self._heads[matches[0]]])
        if not isinstance(index, numbers.Integral):
            raise error(TypeError, f"a Symbol is indexed by int, slice or name of an output, got {type(index).__name__}")
        if not -len(self._heads) <= index < len(self._heads):
            raise error(IndexError, f"output {index} does not exist: there are {len(self._heads)}")
        return Symbol([self._heads[index]])

    def get_internals(self) -> Symbol:
        """All outputs of all nodes, as a group."""
        return Symbol([(n, i) for n in topo(self._heads) for i in range(1 if n.op is None else n.params._sig.visible)])

    def get_children(self) -> Symbol | None:
        """The inputs of the node, as a group; None for a variable."""
        found = [e for n in {id(n): n for n, _ in self._heads}.values() for e in n.inputs]
        return Symbol(found) if found else None

    # -- attributes --------------------------------------------------------------------------------------------
    def attr(self, key: str) -> str | None:
        """An attribute of the node, or None."""
        found = self.list_attr()
        return found.get(key, found.get(f"__{key}__"))

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Attributes of the node; with `recursive` of all nodes below, as ``<node>_<attribute>``."""
        if recursive:
            return {f"{n}_{k}": v for n, d in self.attr_dict().items() for k, v in d.items()}
        return node_attrs(self._heads[0][0])

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Name of a node -> its attributes and parameters, for all nodes below that have any."""
        found = {n.name: node_attrs(n) for n in topo(self._heads)}
        return {k: v for k, v in found.items() if v}

    def _set_attr(self, **kwargs: str) -> None:
        """Set attributes of the node."""
        for k, v in kwargs.items():
            if not isinstance(v, str):
                raise error(ValueError, f"attributes of symbols are strings, {k}={v!r} is a {type(v).__name__}")
        self._heads[0][0].attrs.update(kwargs)

    # -- composition -------------------------------------------------------------------------------------------
    def __call__(self, *args: Symbol, **kwargs: Any) -> Symbol:
        """A copy in which free variables are replaced: by position in `list_arguments`, or by name."""
        name = kwargs.pop("name", None)
        if args and kwargs:
            raise error(TypeError, "compose takes replacements by position or by name, not both")
        if args:
            free = self.list_arguments()
            if len(args) > len(free):
                raise error(TypeError, f"compose got {len(args)} symbols, there are {len(free)} arguments: {free}")
            kwargs = dict(zip(free, args))
        for k, v in kwargs.items():
            if not isinstance(v, Symbol):
                raise error(TypeError, f"compose: {k} must be a Symbol, got {type(v).__name__}")
            if len(v) != 1:
                raise error(ValueError, f"compose: {k} has {len(v)} outputs; choose one")
        unknown = [k for k in kwargs if k not in self.list_inputs()]
        if unknown:
            raise error(ValueError, f"compose: no argument is named {unknown[0]!r}{suggest(unknown[0], self.list_inputs())}")
        swap = {k: v._heads[0] for k, v in kwargs.items()}
        done: dict[int, Node] = {}
        heads_of = {id(n) for n, _ in self._heads}

        def entry(e: Entry) -> Entry:
            n, i = e
            return swap[n.name] if n.op is None and n.name in swap else (done.get(id(n), n), i)

        for n in topo(self._heads):
            if n.op is None:
                continue
            inputs = [entry(e) for e in n.inputs]
            renamed = bool(name) and id(n) in heads_of
            if renamed or any(a[0] is not b[0] or a[1] != b[1] for a, b in zip(inputs, n.inputs)):
                done[id(n)] = Node(n.op, n.params, inputs, name if renamed else n.name, dict(n.attrs))
        return Symbol([entry(e) for e in self._heads])

    def __copy__(self) -> Symbol:
        return self()

    def __deepcopy__(self, memo: Any) -> Symbol:
        return self()

    # -- arithmetic --------------------------------------------------------------------------------------------
    def _entry(self) -> Entry:
        if len(self._heads) != 1:
            raise error(ValueError, f"an operator needs one output, this symbol has {len(self._heads)}: {self.list_outputs()}")
        return self._heads[0]

    def _binary(self, elementwise: str, broadcast: str, other: Any) -> Symbol:
        return compose(_AS_NAMED.get(elementwise, elementwise), (self, other), {})

    def _scalar(self, op: str, scalar: float) -> Symbol:
        old = next((a for a in registry.ops.get(op).aliases if a.endswith("Scalar")), op)
        return compose(old if op in _CAMEL_SCALARS else op, (self,), {"scalar": scalar})

    def _unary(self, op: str) -> Symbol:
        if op == "negative":
            return self._scalar("_mul_scalar", -1.0)
        return compose(op, (self,), {})

    def __bool__(self) -> bool:
        raise error(TypeError, "a Symbol has no truth value; it has no numbers yet")

    def reshape(self, *shape: Any, **kwargs: Any) -> Symbol:
        """Another shape; codes as in ``NDArray.reshape``."""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        return compose("Reshape", (self,), {**({"shape": shape} if shape else {}), **kwargs})

    def astype(self, dtype: Any) -> Symbol:
        """Another dtype."""
        return compose("Cast", (self,), {"dtype": dtype_name(as_dtype(dtype))})

    # -- inference ---------------------------------------------------------------------------------------------
    def _infer(self, what: str, given: dict[str, Any]) -> dict[Any, Any]:
        nodes = topo(self._heads)
        known = {}
        for n in nodes:
            if n.op is None:
                hint = n.attrs.get("__shape__" if what == "shape" else "__dtype__")
                if n.name in given:
                    known[n, 0] = given[n.name]
                elif hint is not None:
                    known[n, 0] = _shape_hint(hint) if what == "shape" else as_dtype(_dtype_hint(hint))
        return infer.infer_graph(nodes, known, what)

    def _named(self, args: Sequence[Any], kwargs: dict[str, Any], convert: Any) -> dict[str, Any]:
        free = self.list_inputs()
        if args and kwargs:
            raise error(ValueError, "give shapes or types by position or by name, not both")
        given = {k: v for k, v in (zip(self.list_arguments(), args) if args else kwargs.items()) if v is not None}
        unknown = [k for k in given if k not in free]
        if unknown and not args:
            import warnings

            warnings.warn(f"no argument is named {unknown[0]!r}{suggest(unknown[0], free)}; it is ignored", UserWarning, stacklevel=4)
        return {k: convert(v) for k, v in given.items() if k in free}

    def infer_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Infer all shapes from some.

        Parameters
        ----------
        *args, **kwargs : tuple of int
            Shapes of arguments by position or by name; 0 is an unknown dimension.

        Returns
        -------
        (list, list, list) of tuple
            Shapes of arguments, outputs and auxiliary states; (None, None, None) if some cannot be inferred.

        Raises
        ------
        MXNetError
            If shapes contradict each other; names node and inputs.
        """
        found = self.infer_shape_partial(*args, **kwargs)
        if any(s is None or 0 in s and not _np_shape() for part in found for s in part):
            return None, None, None
        return found

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> Any:
        """As `infer_shape`, with () for shapes and 0 for dimensions that stay unknown."""
        value = self._infer("shape", self._named(args, kwargs, _unknown_dims))

        def show(e: Entry) -> tuple[int, ...]:
            s = value.get(e)
            return () if s is None else tuple(0 if d == -1 else d for d in s)

        args_, aux = self._variables()
        found = [show((n, 0)) for n in args_], [show(e) for e in self._heads], [show((n, 0)) for n in aux]
        if any(value.get((n, 0)) is None for n in (*args_, *aux)) or any(value.get(e) is None for e in self._heads):
            return tuple([None if s == () and v is None else s for s, v in zip(part, vs)] for part, vs in zip(found, (
                [value.get((n, 0)) for n in args_], [value.get(e) for e in self._heads], [value.get((n, 0)) for n in aux])))
        return found

    def infer_type(self, *args: Any, **kwargs: Any) -> Any:
        """Infer all dtypes from some; arguments that nothing decides are float32.

        Returns
        -------
        (list, list, list) of type
            NumPy types of arguments, outputs and auxiliary states; (None, None, None) if nothing is known.
        """
        given = self._named(args, kwargs, as_dtype)
        value = self._infer("dtype", given)
        args_, aux = self._variables()
        if not given and any(value.get(e) is None for e in self._heads) and not any(value.get((n, 0)) for n in args_):
            return None, None, None
        value = self._complete_types(given)

        def show(e: Entry) -> Any:
            return None if value.get(e) is None else value[e].type

        return [show((n, 0)) for n in args_], [show(e) for e in self._heads], [show((n, 0)) for n in aux]

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> Any:
        """As `infer_type`, with None where nothing is known."""
        value = self._infer("dtype", self._named(args, kwargs, as_dtype))
        args_, aux = self._variables()
        return tuple([None if value.get(e) is None else value[e].type for e in part]
                     for part in ([(n, 0) for n in args_], self._heads, [(n, 0) for n in aux]))

    def _complete_types(self, given: dict[str, Any]) -> dict[Any, Any]:
        """All dtypes; variables that nothing decides become float32, one after the other."""
        given = dict(given)
        while True:
            value = self._infer("dtype", given)
            open_ = next((n for n in self._graph().variables() if value.get((n, 0)) is None), None)
            if open_ is None:
                return value
            given[open_.name] = np.dtype(np.float32)

    # -- execution ---------------------------------------------------------------------------------------------
    def bind(self, ctx: Any, args: Any, args_grad: Any = None, grad_req: Any = "write", aux_states: Any = None,
             group2ctx: Any = None, shared_exec: Any = None) -> Any:
        """Bind the graph to arrays.

        Parameters
        ----------
        ctx : Context
        args, args_grad, aux_states : list or dict of NDArray
            By position in `list_arguments` (`list_auxiliary_states`) or by name.
        grad_req : str, list or dict
            'write', 'add' or 'null', for all or by argument.

        Returns
        -------
        Executor
        """
        from ..executor import Executor

        return Executor(self, ctx, args, args_grad, grad_req, aux_states)

    def simple_bind(self, ctx: Any = None, grad_req: Any = "write", type_dict: Any = None, stype_dict: Any = None,
                    group2ctx: Any = None, shared_arg_names: Any = None, shared_exec: Any = None, shared_buffer: Any = None,
                    **kwargs: Any) -> Any:
        """Bind the graph to new arrays whose shapes are inferred from those given by name.

        Parameters
        ----------
        ctx : Context, optional
            The current one unless told.
        grad_req : str, list or dict
        type_dict : dict of str to dtype, optional
        **kwargs : tuple of int
            Shapes of arguments.

        Returns
        -------
        Executor

        Raises
        ------
        MXNetError
            If a shape cannot be inferred; names the arguments.
        """
        from ..executor import Executor

        return Executor.simple_bind(self, ctx, grad_req, type_dict or {}, kwargs)

    def eval(self, ctx: Any = None, **kwargs: Any) -> list[Any]:
        """Run the graph once on arrays given by name; returns its outputs."""
        ex = self.bind(ctx, kwargs, grad_req="null")
        return ex.forward()  # type: ignore[no-any-return]

    # -- files -------------------------------------------------------------------------------------------------
    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph as MXNet's JSON."""
        from .files import to_json

        return to_json(self)

    def save(self, fname: Any, remove_amp_cast: bool = True) -> None:
        """Write the graph as MXNet's JSON to a file or URL, wholly or not at all."""
        from .files import save

        save(self, fname)

    def __reduce__(self) -> tuple[Any, ...]:
        from .files import load_json

        return (load_json, (self.tojson(),))

    def __repr__(self) -> str:
        name = self.name
        return f"<Symbol {name}>" if name is not None else f"<Symbol group [{', '.join(self.list_outputs())}]>"


#: Names under which MXNet's Python operators compose, and from which automatic names come: ``_plus0``.
_AS_NAMED = {"elemwise_add": "_Plus", "elemwise_sub": "_Minus", "elemwise_mul": "_Mul", "elemwise_div": "_Div",
             **{n: "_" + "_".join(w.capitalize() for w in n.strip("_").split("_"))
                for n in ["_mod", "_power", *(v[0] for v in COMPARISONS.values())]}}
assert all(v[0] in _AS_NAMED for v in OPERATORS.values())
#: Operators with a scalar that compose under their older names, ``_PlusScalar``.
_CAMEL_SCALARS = {n for v in OPERATORS.values() for n in v[2:4]} - {"_rpower_scalar"}


def _np_shape() -> bool:
    from .._core.state import state

    return state.np_shape


def _unknown_dims(shape: Any) -> tuple[int, ...] | None:
    if isinstance(shape, numbers.Integral):
        shape = (shape,)
    dims = tuple(int(d) for d in shape)
    if not dims:
        return None
    return tuple(-1 if d == 0 else d for d in dims) if not _np_shape() else dims


def _shape_hint(text: str) -> Any:
    import ast

    return _unknown_dims(ast.literal_eval(text))


_TYPE_CODES = {0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64", 7: "bool", 12: "bfloat16"}


#: MXNet's numbers of storage types in attributes.
_STORAGE_CODES = {"default": 0, "row_sparse": 1, "csr": 2}


def _dtype_hint(text: str) -> str:
    return _TYPE_CODES[int(text)] if text.isdigit() else text


def output_name(e: Entry) -> str:
    """``<node>_<output>``, or the name of a variable."""
    n, i = e
    return n.name if n.op is None else f"{n.name}_{n.params._sig.outputs[i]}"


def node_attrs(n: Node) -> dict[str, str]:
    """Attributes and parameters of a node, as strings."""
    return {**({} if n.op is None else n.op.parser.strings(n.params)), **n.attrs}


def auto_variable(name: str, op: Op, label: str, attrs: dict[str, str]) -> Node:
    """The variable for an input that was left out: like MXNet's it inherits the attributes of its node."""
    return variable(name, **{**attrs, **op.input_attrs.get(label, {})})


def compose(op_name: str, args: Sequence[Any], kwargs: dict[str, Any], op: Op | None = None) -> Symbol:
    """Compose an operator: inputs that are missing become variables ``<name>_<input>``."""
    op = op or registry.ops.get(op_name)
    name, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
    kwargs.pop("out", None)
    attrs = attribute.current().get(attr)
    for k in [k for k in kwargs if k.startswith("__") and k.endswith("__") or k in HIDDEN and k not in op.params]:
        attrs[f"__{k.strip('_')}__"] = str(kwargs.pop(k))
    if op.variadic and len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    if op.variadic:
        args = [Symbol([e]) for a in args for e in a._heads] if all(isinstance(a, Symbol) for a in args) else args
    inputs, p = binding.bind(op, args, kwargs, lambda x: isinstance(x, Symbol), need_all=False)
    name = naming.current().get(name, op_name.lower())
    entries = []
    for label, x in zip(p._sig.inputs, inputs):
        if x is None:
            entries.append((auto_variable(f"{name}_{label}", op, label, {**attrs, **op.parser.strings(p)}), 0))
        else:
            entries.append(x._entry())
            if entries[-1][0].op is None:
                for key, value in op.input_attrs.get(label, {}).items():
                    entries[-1][0].attrs.setdefault(key, value)
    node = Node(op, p, entries, name, attrs)
    return Symbol([(node, i) for i in range(p._sig.visible)])


def Variable(name: str, attr: dict[str, str] | None = None, shape: Any = None, lr_mult: float | None = None,
             wd_mult: float | None = None, dtype: Any = None, init: Any = None, stype: str | None = None,
             profiler_scope: str | None = None, **kwargs: Any) -> Symbol:
    """A symbol to be bound to an array.

    Parameters
    ----------
    name : str
    attr : dict of str, optional
    shape : tuple of int, optional
        0 is an unknown dimension.
    lr_mult, wd_mult : float, optional
        Factors that optimizers apply to this parameter.
    dtype : dtype, optional
    init : Initializer or str, optional
        How modules initialise it.
    stype : str, optional
        Storage type.
    **kwargs : str
        Further attributes, named ``__like_this__``.
    """
    if not isinstance(name, str):
        raise error(TypeError, f"Variable: name must be a str, got {type(name).__name__}")
    attrs = attribute.current().get(attr)
    for key, value in (("shape", shape), ("lr_mult", lr_mult), ("wd_mult", wd_mult)):
        if value is not None:
            attrs[f"__{key}__"] = str(tuple(value) if isinstance(value, list) else value)
    if stype is not None:
        if stype not in _STORAGE_CODES:
            raise error(ValueError, f"Variable: stype must be one of {', '.join(_STORAGE_CODES)}, got {stype!r}")
        attrs["__storage_type__"] = str(_STORAGE_CODES[stype])
    if dtype is not None:
        codes = {v: k for k, v in _TYPE_CODES.items()}
        attrs["__dtype__"] = str(codes[dtype_name(as_dtype(dtype))])
    if init is not None:
        attrs["__init__"] = init if isinstance(init, str) else init.dumps()
    for k, v in kwargs.items():
        if not (k.startswith("__") and k.endswith("__")):
            raise error(ValueError, f"Variable: attribute {k!r} must begin and end with two underscores")
        attrs[k] = str(v)
    return Symbol([(variable(name, **attrs), 0)])


var = Variable


def Group(symbols: Sequence[Symbol]) -> Symbol:
    """One symbol with the outputs of several."""
    symbols = list(symbols)
    if not symbols or not all(isinstance(s, Symbol) for s in symbols):
        raise error(TypeError, "Group takes a list of one or more Symbols")
    return Symbol([e for s in symbols for e in s._heads])


def _method(name: str, op_name: str) -> Any:
    def method(self: Symbol, *args: Any, **kwargs: Any) -> Symbol:
        return compose(op_name, (self, *args), kwargs)

    method.__name__, method.__qualname__ = name, f"Symbol.{name}"
    method.__doc__ = f"Same as ``mx.sym.{op_name}`` of this symbol; the arguments follow."
    return method


for _name, _target in OP_METHODS.items():
    if _name not in Symbol.__dict__:
        setattr(Symbol, _name, _method(_name, _target))
