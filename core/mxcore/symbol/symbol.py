"""The class Symbol: outputs of a graph, with names, inferred on demand, bound to arrays for execution."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import _io_files
from .._core import tables
from .._core.errors import MXNetError, error, suggest
from .._core.graph import Node, topo
from .._core.op import Op
from .._core.params import as_dtype
from ..base import NotImplementedForSymbol
from ..ndarray import NDArray
from ..ndarray.methods import OP_METHODS
from ..ops.common.python_operators import COMPARISONS, OPERATORS
from ..parameters import dtype_name, given_params
from .attrs import set_attrs, shown
from .base import Entry, SymbolBase, output_name
from .compose import copied, entries, replacements
from .debug import debug_text
from .derivative import gradients
from .inference import infer_heads, infer_shapes, infer_types, named, variables
from .partition import run_backend
from .reading import read_json
from .writing import to_json

__all__ = ["Entry", "Group", "Symbol", "compose", "output_name"]


class Symbol(SymbolBase):
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

    __slots__ = ()

    #: What operators over such a symbol, and parts of it, give.
    result: type[Symbol]
    stype = "default"
    #: The class of its values.
    array: type[NDArray] = NDArray

    # -- parts -------------------------------------------------------------------------------------------------
    @property
    def name(self) -> str | None:
        """Name of the node; None for a group of several."""
        nodes = {id(n): n for n, _ in self._heads}
        return next(iter(nodes.values())).name if len(nodes) == 1 else None

    @property
    def handle(self) -> int:
        """An integer that identifies the node, for code that compares handles."""
        return id(self._heads[0][0])

    def _variables(self) -> tuple[list[Node], list[Node]]:
        """(arguments, auxiliary states) in order of first use."""
        return variables(self._heads)

    def list_arguments(self) -> list[str]:
        """Names of the arguments, in order of first use."""
        return [n.name for n in self._variables()[0]]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states, in order of first use."""
        return [n.name for n in self._variables()[1]]

    def list_inputs(self) -> list[str]:
        """Names of arguments and auxiliary states, in order of first use."""
        return [n.name for n in topo(self._heads) if n.op is None]

    @property
    def num_outputs(self) -> int:
        """How many outputs."""
        return len(self._heads)

    def __len__(self) -> int:
        return len(self._heads)

    def __iter__(self) -> Iterator[Symbol]:
        return (self.result([e]) for e in self._heads)

    def __getitem__(self, index: Any) -> Symbol:
        if isinstance(index, slice):
            found = self._heads[index]
            if not found:
                raise error(
                    IndexError, f"outputs {index.start}:{index.stop}:{index.step} of {len(self._heads)} are none"
                )
            return self.result(found)
        if isinstance(index, str):
            names = self.list_outputs()
            matches = [i for i, n in enumerate(names) if n == index]
            if not matches:
                raise error(ValueError, f"no output is named {index!r}{suggest(index, names)}")
            if len(matches) > 1:
                raise error(ValueError, f"{len(matches)} outputs are named {index!r}; use an index")
            return self.result([self._heads[matches[0]]])
        if not isinstance(index, numbers.Integral):
            raise error(
                TypeError, f"a Symbol is indexed by int, slice or name of an output, got {type(index).__name__}"
            )
        if not -len(self._heads) <= int(index) < len(self._heads):
            raise error(IndexError, f"output {index} does not exist: there are {len(self._heads)}")
        return self.result([self._heads[int(index)]])

    def get_internals(self) -> Symbol:
        """All outputs of all nodes, as a group; choose by name: ``net.get_internals()['fc1_output']``."""
        return Symbol([(n, i) for n in topo(self._heads) for i in range(1 if n.op is None else n.params._sig.visible)])

    def get_children(self) -> Symbol | None:
        """The inputs of the node, as a group; None for a variable."""
        found = [e for n in {id(n): n for n, _ in self._heads}.values() for e in n.inputs]
        return Symbol(found) if found else None

    def get_inputs(self) -> Symbol:
        """All free variables, arguments and auxiliary states, as a group in the order of `list_inputs`."""
        return Symbol([(n, 0) for n in topo(self._heads) if n.op is None])

    # -- attributes --------------------------------------------------------------------------------------------
    def attr(self, key: str) -> str | None:
        """An attribute or parameter of the node, or None.

        >>> import mxcore as mx
        >>> mx.sym.Variable("w", lr_mult=2).attr("lr_mult")
        '2'
        """
        return self.list_attr().get(key)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Attributes and parameters of the node; with `recursive` of all nodes below, as ``<node>_<attribute>``."""
        if recursive:
            return {f"{n}_{k}": v for n, d in self.attr_dict().items() for k, v in d.items()}
        return shown(self._heads[0][0])

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Name of a node -> its attributes and parameters, for all nodes below that have any."""
        found = {n.name: shown(n) for n in topo(self._heads)}
        return {k: v for k, v in found.items() if v}

    def _set_attr(self, **kwargs: str) -> None:
        """Set attributes of the node; parameters of its operator are set anew."""
        if len({id(n) for n, _ in self._heads}) != 1:
            raise error(ValueError, f"_set_attr: this is a group of several nodes {self.list_outputs()}; choose one")
        set_attrs(self._heads[0][0], kwargs)

    # -- composition -------------------------------------------------------------------------------------------
    def __call__(self, *args: Symbol, **kwargs: Any) -> Symbol:
        """A copy in which free variables are replaced.

        Parameters
        ----------
        *args : Symbol
            Replacements in the order of `list_arguments`.
        name : str, optional
            New name of the node.
        **kwargs : Symbol
            Replacements by name.

        Raises
        ------
        MXNetError
            If no argument has such a name, or something else than one output is to replace one.

        Examples
        --------
        >>> import mxcore as mx
        >>> net = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="top")
        >>> net(x=mx.sym.tanh(mx.sym.Variable("data"))).list_arguments()
        ['data', 'top_weight', 'top_bias']
        """
        found = self._copy()
        found._compose(*args, **kwargs)
        return found

    def _gen_atomic_symbol(self) -> Symbol:
        """The operator of the only output with its parameters, to be called with other inputs."""
        n, _ = self._entry()
        if n.op is None:
            raise error(ValueError, f"_gen_atomic_symbol: '{n.name}' is a variable, and has no operator")
        return _Atomic(n)

    def _compose(self, *args: Symbol, **kwargs: Any) -> None:
        """Replace free variables in place; other symbols over the same nodes stay as they are."""
        name = kwargs.pop("name", None)
        swap = replacements(args, kwargs, self.list_arguments(), self.list_inputs())
        self._heads = copied(self._heads, swap, name)

    def as_np_ndarray(self) -> Symbol:
        """The same outputs as a symbol of ``mx.sym.np``."""
        # By its name, for it derives from this class.
        found: Symbol = import_module(f"{__package__}.numpy.symbol")._Symbol(self._heads)
        return found

    def _copy(self) -> Symbol:
        return type(self)(self._heads)

    def __copy__(self) -> Symbol:
        return type(self)(copied(self._heads, {}, variables=True))

    def __deepcopy__(self, memo: Any) -> Symbol:
        return self.__copy__()

    # -- arithmetic --------------------------------------------------------------------------------------------
    if TYPE_CHECKING:  # `ops.infix.arithmetic` and `OP_METHODS` make these

        def _infix(self, other: Any) -> Symbol: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _infix
        __mod__ = __rmod__ = __pow__ = __rpow__ = __lt__ = __le__ = __gt__ = __ge__ = _infix
        __eq__ = __ne__ = _infix  # type: ignore[assignment]  # of each element

        def __neg__(self) -> Symbol: ...
        def __abs__(self) -> Symbol: ...
        def __getattr__(self, name: str) -> Any: ...

    def _binary(self, elementwise: str, broadcast: str, other: Any) -> Symbol:
        if getattr(other, "array", self.array) is not self.array:
            raise error(
                TypeError,
                f"{elementwise}: a symbol of mx.sym and one of mx.sym.np do not go together; as_np_ndarray() and "
                "as_nd_ndarray() give the same outputs as a symbol of the other kind",
            )
        return compose(_AS_NAMED.get(elementwise, elementwise), (self, other), {})

    def _scalar(self, op: str, scalar: float) -> Symbol:
        if getattr(scalar, "shape", ()):
            raise error(
                TypeError, f"{op}: a symbol cannot be combined with an array of NumPy; use a variable or a number"
            )
        old = next((a for a in tables.ops.get(op).aliases if a.endswith("Scalar")), op)
        return compose(old if op in _CAMEL_SCALARS else op, (self,), {"scalar": scalar})

    def _unary(self, op: str) -> Symbol:
        if op == "negative":
            return self._scalar("_mul_scalar", -1.0)
        return compose(op, (self,), {})

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol(self.__bool__, "bool")

    # -- methods that are not just the operator ----------------------------------------------------------------
    def reshape(self, *args: Any, **kwargs: Any) -> Symbol:
        """Another shape, given as a tuple or as several ints; codes as in ``NDArray.reshape``."""
        if args and all(isinstance(d, numbers.Integral) for d in args):
            args = (tuple(args),)
        return compose("reshape", (self, *args), kwargs)

    def astype(self, dtype: Any, **kwargs: Any) -> Symbol:
        """Another dtype."""
        return compose("cast", (self,), {"dtype": dtype_name(as_dtype(dtype)), **kwargs})

    def diag(self, k: int = 0, **kwargs: Any) -> Symbol:
        """The `k`-th diagonal, or the matrix with this diagonal."""
        return compose("diag", (self,), {"k": k, **kwargs})

    def expand_dims(self, axis: int, inplace: bool = False, **kwargs: Any) -> Symbol:
        """A new axis of length 1 before `axis`; `inplace` means nothing in a graph."""
        return compose("expand_dims", (self,), {"axis": axis, **kwargs})

    def squeeze(self, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Symbol:
        """Without axes of length 1, those in `axis` or all; `inplace` means nothing in a graph."""
        return compose("squeeze", (self,), {"axis": axis, **kwargs})

    def flatten(self, inplace: bool = False, **kwargs: Any) -> Symbol:
        """All axes but the first as one; `inplace` means nothing in a graph."""
        return compose("flatten", (self,), kwargs)

    def split_v2(self, *args: Any, **kwargs: Any) -> Symbol:
        """Same as ``mx.sym.split_v2`` of this symbol; the arguments follow."""
        from .creation import split_v2

        return split_v2(self, *args, **kwargs)

    def as_nd_ndarray(self) -> Symbol:
        """This symbol: it has the semantics of ``mx.nd``."""
        return self

    # -- inference ---------------------------------------------------------------------------------------------
    def _infer(self, what: str, given: dict[str, Any]) -> dict[Any, Any]:
        """Entry -> shape (-1 is unknown) or dtype, from those of arguments by name."""
        return infer_heads(self._heads, what, given)

    def _named(self, args: Sequence[Any], kwargs: dict[str, Any], convert: Any) -> dict[str, Any]:
        """What was given for arguments, by name; what no argument is named is left out."""
        return named(self._heads, args, kwargs, convert)

    def infer_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Infer all shapes from some, forward and backward.

        Parameters
        ----------
        *args, **kwargs : tuple of int
            Shapes of arguments by position or by name; 0 is an unknown dimension (-1 under ``np_shape``).

        Returns
        -------
        (list, list, list) of tuple
            Shapes of arguments, outputs and auxiliary states; (None, None, None), and a warning, if some cannot be
            inferred.

        Raises
        ------
        MXNetError
            If shapes contradict each other: names node, inputs and where they were known from. If no argument has such
            a name.

        Examples
        --------
        >>> import mxcore as mx
        >>> net = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="fc")
        >>> net.infer_shape(x=(2, 5))
        ([(2, 5), (3, 5), (3,)], [(2, 3)], [])
        """
        return infer_shapes(self._heads, args, kwargs, False)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> Any:
        """As `infer_shape`, with () and 0 for unknown shapes and dimensions (None and -1 under ``np_shape``)."""
        return infer_shapes(self._heads, args, kwargs, True)

    def infer_type(self, *args: Any, **kwargs: Any) -> Any:
        """Infer all dtypes from some, forward and backward.

        Returns
        -------
        (list, list, list) of type
            NumPy types of arguments, outputs and auxiliary states; (None, None, None), and a warning, if some cannot be
            inferred.

        Raises
        ------
        MXNetError
            As `infer_shape`.
        """
        return infer_types(self._heads, args, kwargs, False)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> Any:
        """As `infer_type`, with None where nothing is known."""
        return infer_types(self._heads, args, kwargs, True)

    # -- execution ---------------------------------------------------------------------------------------------
    def bind(
        self,
        ctx: Any,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Any = None,
        shared_exec: Any = None,
    ) -> Any:
        """Bind the graph to arrays.

        Parameters
        ----------
        ctx : Context
        args, args_grad, aux_states : list or dict of NDArray
            By position in `list_arguments` (`list_auxiliary_states`) or by name.
        grad_req : str, list or dict
            'write', 'add' or 'null', for all or by argument.
        group2ctx : dict of str to Context, optional
            Where nodes with an attribute ``ctx_group`` run.
        shared_exec : Executor, optional
            Another executor that never runs at the same time, whose memory can be used.

        Returns
        -------
        Executor
        """
        from ..executor import Executor

        try:
            return Executor(
                self, ctx, args, args_grad, grad_req, aux_states, group2ctx=group2ctx, shared_exec=shared_exec
            )
        except MemoryError as e:
            raise (
                e
                if isinstance(e, MXNetError)
                else error(MemoryError, f"bind: no memory for the outputs of {self!r}: {e}")
            ) from None

    def simple_bind(
        self,
        ctx: Any = None,
        grad_req: Any = "write",
        type_dict: Any = None,
        stype_dict: Any = None,
        group2ctx: Any = None,
        shared_arg_names: Any = None,
        shared_exec: Any = None,
        shared_buffer: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Bind the graph to new arrays whose shapes are inferred from those given by name.

        Parameters
        ----------
        ctx : Context, optional
            The current one unless told.
        grad_req : str, list or dict
        type_dict, stype_dict : dict of str, optional
            Dtypes and storage types of arguments.
        group2ctx : dict of str to Context, optional
            Where nodes with an attribute ``ctx_group`` run.
        shared_arg_names : list of str, optional
            Arguments whose arrays `shared_exec` has already.
        shared_exec : Executor, optional
            Another executor that never runs at the same time, whose memory can be used.
        shared_buffer : dict of str to NDArray, optional
            Arrays to be used again; new ones are entered.
        **kwargs : tuple of int
            Shapes of arguments. Names that no argument has are ignored.

        Returns
        -------
        Executor

        Raises
        ------
        MXNetError
            If a shape cannot be inferred; names the arguments.
        """
        from ..executor import Executor

        return Executor.simple_bind(
            self,
            ctx,
            grad_req,
            type_dict or {},
            kwargs,
            group2ctx=group2ctx,
            stype_dict=stype_dict,
            shared_exec=shared_exec,
            shared_buffer=shared_buffer,
            shared_arg_names=shared_arg_names,
        )

    def eval(self, ctx: Any = None, **kwargs: Any) -> list[Any]:
        """Run the graph once on arrays given by name, auxiliary states included; returns its outputs.

        >>> import mxcore as mx
        >>> (mx.sym.Variable("a") * 3).eval(a=mx.nd.ones(2))[0].asnumpy().tolist()
        [3.0, 3.0]
        """
        aux = {k: kwargs.pop(k) for k in self.list_auxiliary_states() if k in kwargs}
        outputs: list[Any] = self.bind(ctx, kwargs, grad_req="null", aux_states=aux).forward()
        return outputs

    def grad(self, wrt: str | Sequence[str]) -> Symbol:
        """The gradients with respect to arguments, as a symbol of as many outputs.

        Parameters
        ----------
        wrt : str or list of str
            Names of arguments.

        Returns
        -------
        Symbol
            Its further arguments ``<node>_<index of the output>_grad`` are the incoming gradients of this symbol's
            outputs.

        Examples
        --------
        >>> import mxcore as mx
        >>> mx.sym.square(mx.sym.Variable("x"), name="y").grad("x").list_arguments()
        ['y_0_grad', 'x']
        """
        return self.result(gradients(self._heads, wrt, True))

    def gradient(self, wrt: str | Sequence[str]) -> Symbol:
        """The gradients of the sum of all elements with respect to arguments; see `grad`."""
        return self.result(gradients(self._heads, wrt, False))

    # -- passes ------------------------------------------------------------------------------------------------
    def optimize_for(
        self,
        backend: str,
        args: Any = None,
        aux: Any = None,
        ctx: Any = None,
        shape_dict: Any = None,
        type_dict: Any = None,
        stype_dict: Any = None,
        skip_infer: bool = False,
        **kwargs: Any,
    ) -> Symbol:
        """This symbol after a graph pass that a plugin registered.

        Parameters
        ----------
        backend : str
            Name of the pass.
        args, aux : list or dict of NDArray, optional
            Parameters: their shapes and dtypes are known to the pass. Dicts may be changed by it.
        ctx : Context, optional
            Where the graph is going to run.
        shape_dict, type_dict, stype_dict : dict of str, optional
            Shapes, dtypes and storage types of further arguments.
        skip_infer : bool
            Do not infer shapes and dtypes before.
        **kwargs
            Options for the pass.

        Returns
        -------
        Symbol
            The graph as it is where ``MXCORE_DISABLE_PASSES`` or `executor.passes_off` names the pass.

        Raises
        ------
        MXNetError
            If no such pass is registered (lists those that are), or the pass fails (names its plugin).

        Notes
        -----
        The pass is a function Graph -> Graph; ``graph.shapes`` and ``graph.dtypes`` hold what could be inferred, and
        ``graph.info`` the keys ``args``, ``aux``, ``ctx``, ``stypes`` and ``options``.
        """
        given: dict[str, Any] = {}
        for names, arrays in ((self.list_arguments, args), (self.list_auxiliary_states, aux)):
            given.update(arrays if isinstance(arrays, dict) else zip(names(), arrays or ()))
        arrays = {k: v for k, v in given.items() if v is not None}
        facts = {
            "shapes": {**{k: v.shape for k, v in arrays.items()}, **(shape_dict or {})},
            "dtypes": {**{k: v.dtype for k, v in arrays.items()}, **(type_dict or {})},
        }
        info = {"args": args, "aux": aux, "ctx": ctx, "stypes": stype_dict or {}, "options": kwargs}
        return self.result(run_backend(self._heads, backend, facts, skip_infer, info))

    def get_backend_symbol(self, backend: str) -> Symbol:
        """This symbol after the graph pass `backend`, nothing inferred; see `optimize_for`."""
        return self.optimize_for(backend, skip_infer=True)

    # -- texts and files ---------------------------------------------------------------------------------------
    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph as MXNet's JSON, without the casts of automatic mixed precision unless told."""
        return to_json(self._heads, remove_amp_cast)

    def save(self, fname: Any, remove_amp_cast: bool = True) -> None:
        """Write the graph as MXNet's JSON to a file or URL, wholly or not at all; see `tojson`."""
        _io_files.write_atomic(fname, self.tojson(remove_amp_cast).encode())

    def debug_str(self) -> str:
        """All nodes with their inputs and attributes, as text."""
        return debug_text(self._heads)

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_json, (self.tojson(remove_amp_cast=False),)

    def __setstate__(self, state: dict[str, str]) -> None:
        # What MXNet's own pickles hold.
        self._heads = read_json(state["handle"], "the pickled symbol")

    def __repr__(self) -> str:
        name = self.name
        return (
            f"<Symbol {name}>" if name is not None else f"<Symbol group [{', '.join(n.name for n, _ in self._heads)}]>"
        )


def _from_json(text: str) -> Symbol:
    return Symbol(read_json(text, "the pickled symbol"))


#: Names under which MXNet's Python operators compose, and from which automatic names come: ``_plus0``.
_AS_NAMED = {
    "elemwise_add": "_Plus",
    "elemwise_sub": "_Minus",
    "elemwise_mul": "_Mul",
    "elemwise_div": "_Div",
    **{
        n: "_" + "_".join(w.capitalize() for w in n.strip("_").split("_"))
        for n in ["_mod", "_power", *(v[0] for v in COMPARISONS.values())]
    },
}
assert all(v[0] in _AS_NAMED for v in OPERATORS.values())
#: Operators with a scalar that compose under their older names, ``_PlusScalar``.
_CAMEL_SCALARS = {n for v in OPERATORS.values() for n in v[2:4]} - {"_rpower_scalar"}


class _Atomic(Symbol):
    """An operator that has no inputs yet."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        super().__init__(None)
        self._node = node

    def __call__(self, *args: Symbol, **kwargs: Any) -> Symbol:
        """The operator over symbols."""
        n = self._node
        return compose(n.op.name, args, {**given_params(n.params), "attr": dict(n.attrs), **kwargs}, n.op)


def compose(op_name: str, args: Sequence[Any], kwargs: dict[str, Any], op: Op | None = None) -> Symbol:
    """The outputs of a new node that runs an operator; see :func:`mxcore.symbol.compose.entries`."""
    cls = Symbol
    for x in (*args, *kwargs.values()):
        first = x[0] if isinstance(x, (list, tuple)) and x else x
        if isinstance(first, Symbol):
            cls = first.result
            break
    return cls(entries(op_name, args, kwargs, op))


def Group(symbols: Sequence[Symbol], create_fn: Callable[..., Symbol] = Symbol) -> Symbol:
    """One symbol with the outputs of several.

    Parameters
    ----------
    symbols : list of Symbol
    create_fn : callable, optional
        Makes the symbol from its heads.
    """
    if (
        not isinstance(symbols, Iterable)
        or not (symbols := list(symbols))
        or not all(isinstance(s, SymbolBase) for s in symbols)
    ):
        got = [type(s).__name__ for s in symbols] if isinstance(symbols, list) else type(symbols).__name__
        raise error(TypeError, f"Group takes a list of one or more Symbols, got {got}")
    made = symbols[0].result if create_fn is Symbol and isinstance(symbols[0], Symbol) else create_fn
    return made([e for s in symbols for e in s._heads])


def _method(name: str) -> Any:
    def method(self: Symbol, *args: Any, **kwargs: Any) -> Symbol:
        return compose(name, (self, *args), kwargs)

    method.__name__, method.__qualname__ = name, f"Symbol.{name}"
    method.__doc__ = f"Same as ``mx.sym.{name}`` of this symbol; the arguments follow."
    return method


def _refusal(name: str) -> Any:
    def method(self: Symbol, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedForSymbol(method, None, *args)

    method.__name__, method.__qualname__ = name, f"Symbol.{name}"
    method.__doc__ = "Raises an error: a symbol has no numbers; this is a method of NDArray."
    return method


Symbol.result = Symbol
for _name in OP_METHODS:
    if _name not in Symbol.__dict__:
        setattr(Symbol, _name, _method(_name))
for _name in ("as_in_context", "asnumpy", "asscalar", "backward", "copy", "detach", "wait_to_read"):
    setattr(Symbol, _name, _refusal(_name))
