"""Operator declarations: one object per operator, its facets attached below it. Declaring registers nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import CodeType
from typing import Any, cast

from .checks import checked
from .errors import caught, error, in_a_line, said, suggest
from .gradplan import GradPlan
from .params import Int, Param, Params, Parser
from .roles import ROLES

__all__ = ["Op", "Signature", "op", "MISSING"]

#: Marks "no gradient rule", as opposed to ``grad=None``: "the gradient is zero".
MISSING: Any = type("Missing", (), {"__repr__": lambda s: "missing", "__bool__": lambda s: False})()
#: What passes ask of operators: name -> ``(op, value) -> what is kept``, which refuses a wrong value. Who asks enters
#: it (:mod:`mxcore.facets`).
FACETS: dict[str, Callable[[Op, Any], Any]] = {}


class _Slot:
    """One item of an ``inputs=`` or ``outputs=`` text: ``name``, ``name~``, ``name*``, ``name[condition]``."""

    __slots__ = ("name", "like", "variadic", "condition")

    def __init__(self, text: str, where: str) -> None:
        self.condition: CodeType | None = None
        if text.endswith("]"):
            text, cond = text[:-1].split("[", 1)
            try:
                self.condition = compile(cond, f"<{where}>", "eval")
            except SyntaxError as e:
                raise error(ValueError, f"{where}: condition [{cond}]: {e.msg}") from None
        self.variadic, self.like = text.endswith("*"), "~" in text[-2:]
        self.name = text.rstrip("*~")
        if not self.name.isidentifier():
            raise error(ValueError, f"{where}: {text!r} is no name")

    def active(self, p: Params) -> bool:
        return self.condition is None or bool(eval(self.condition, {"__builtins__": {}, "len": len}, p.__dict__))


def _slots(text: str, where: str) -> list[_Slot]:
    parts, depth, word = [], 0, ""
    for c in text + " ":
        depth += (c == "[") - (c == "]")
        if c == " " and not depth:
            if word:
                parts.append(word)
            word = ""
        else:
            word += c
    return [_Slot(w, where) for w in parts]


class Signature:
    """What one set of parameters selects: the inputs and outputs of the operator.

    Attributes
    ----------
    inputs, outputs : tuple of str
        Names, variadic ones expanded (``arg0``, ``arg1`` …).
    slots : tuple of int
        For each input, the index of its place in the declaration; the items of a variadic share one.
    like : frozenset of int
        Inputs of which only shape and dtype are used.
    aux : tuple of int
        Inputs that are states: hidden from ``list_arguments``, written by the operator.
    mutates : tuple of int
        Inputs that the operator returns new values for, after its outputs.
    states, written : frozenset of int
        Inputs that are states, its own or of operators in graphs that it holds; those, and others, that it writes to
        beside backward.
    visible : int
        How many outputs a user sees.
    out_at : dict
        Place in the declaration -> index, of the outputs that are not switched off.
    random : bool
        Whether the operator draws a random key.
    """

    __slots__ = (
        "inputs",
        "outputs",
        "slots",
        "like",
        "aux",
        "mutates",
        "states",
        "written",
        "visible",
        "n_out",
        "n_all",
        "variadic",
        "index",
        "out_at",
        "random",
    )

    def __init__(self, op: Op, p: Params) -> None:
        ins: list[str] = []
        slots: list[int] = []
        like: set[int] = set()
        self.variadic = -1
        for j, s in enumerate(op.input_slots):
            if not s.active(p):
                continue
            if s.variadic:
                self.variadic = len(ins)
                names = op.arg_names(p) if op.arg_names else [f"arg{i}" for i in range(getattr(p, op.count))]
                if s.like:
                    like.update(range(len(ins), len(ins) + len(names)))
                ins += names
                slots += [j] * len(names)
            else:
                if s.like:
                    like.add(len(ins))
                ins.append(s.name)
                slots.append(j)
        self.inputs, self.slots, self.like = tuple(ins), tuple(slots), frozenset(like)
        self.index = {n: i for i, n in enumerate(ins)}
        aux = op.aux(p) if callable(op.aux) else op.aux
        mutates = op.mutates(p) if callable(op.mutates) else op.mutates
        self.aux = tuple(self.index[n] for n in aux if n in self.index)
        self.mutates = tuple(self.index[n] for n in mutates if n in self.index)
        inner = op.states_rule(p) if op.states_rule else {}
        self.states = frozenset((*self.aux, *inner))
        self.written = frozenset((*self.mutates, *[i for i, written in inner.items() if written]))
        found = (
            list(enumerate(op.outputs(p)))
            if callable(op.outputs)
            else [(i, s.name) for i, s in enumerate(op.outputs) if s.active(p)]
        )
        self.outputs = tuple(name for _, name in found)
        self.out_at = {place: i for i, (place, _) in enumerate(found)}
        self.n_out = len(self.outputs)
        self.n_all = self.n_out + len(self.mutates)
        vis = op.visible(p) if callable(op.visible) else op.visible
        self.visible = self.n_out if vis is None else int(vis)
        self.random = bool(op.random(p) if callable(op.random) else op.random)

    def __repr__(self) -> str:
        return f"<Signature ({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})>"


class Op:
    """One operator: names, inputs, parameters, body and facets. Made by :func:`op` and :mod:`mxcore.elementwise`.

    The facets ``shape``, ``dtype``, ``storage``, ``grad``, ``cost`` and ``backward`` are decorators; see each.
    """

    #: Runs an operator on arrays; dispatch enters it here, so that declarations do not depend on execution.
    run: Callable[..., Any]
    #: The same for inputs and parameters that are bound already, as those of Python's operators are. What changes
    #: users' calls (mixed precision) is entered in the place of both (`dispatch.route`); gradient rules, bodies and
    #: programs go past them.
    apply: Callable[..., Any]

    def __init__(
        self,
        name: str,
        body: Callable[..., Any] | None,
        *,
        inputs: str = "data",
        outputs: str | Callable[[Params], Sequence[str]] = "output",
        params: Mapping[str, Param] | None = None,
        aliases: Iterable[str] = (),
        aux: Any = "",
        mutates: Any = "",
        visible: int | Callable[[Params], int] | None = None,
        random: bool | Callable[[Params], bool] = False,
        stateful: bool = False,
        view: bool = False,
        alias: str = "",
        count: str = "num_args",
        arg_names: Callable[[Params], list[str]] | None = None,
        grad: Any = MISSING,
        doc: str | None = None,
        direct: str | None = None,
        samples: Sequence[Any] | Callable[[], Sequence[Any]] = (),
        role: str = "",
        twin_of: tuple[Op, Callable[..., bool]] | None = None,
        **facets: Any,
    ) -> None:
        #: What it was declared with, by the names of the arguments.
        self.declared = {**locals()}
        where = f"operator {name}"
        self.name, self.aliases, self.body = name, tuple(aliases.split() if isinstance(aliases, str) else aliases), body
        #: Under which names it has kernels, and when those of another operator compute it.
        self.kernel_names: tuple[str, ...] = (name, *self.aliases, *(twin_of[0].kernel_names if twin_of else ()))
        self.twin_when = twin_of and twin_of[1]
        self.input_slots = _slots(inputs, where)
        self.outputs: Any = outputs if callable(outputs) else _slots(outputs, where)
        self.aux = aux if callable(aux) else tuple(aux.split())
        # An auxiliary state is by definition something that the operator may write.
        self.mutates = mutates if callable(mutates) else tuple(mutates.split())
        self.visible, self.random, self.stateful, self.view = visible, random, stateful, view
        self.alias = dict(pair.split("->") for pair in alias.split())
        self.count, self.arg_names = count, arg_names
        #: The array function that means the same: ``name``, ``name:swap`` with arguments swapped, ``name:float`` of
        #: floats only.
        self.direct, self.sampled = direct, samples
        #: Attributes that symbols give the variable of an input that was left out, e.g. how to initialise a state.
        self.input_attrs: dict[str, dict[str, str]] = {}
        self.role = role
        if role and role not in ROLES:
            raise error(
                ValueError, f"{where}: no role is named {role!r}{suggest(role, ROLES)}; there are: {', '.join(ROLES)}"
            )
        specs = dict(params or {})
        self.variadic = any(s.variadic for s in self.input_slots)
        if self.variadic and count not in specs and arg_names is None:
            specs[count] = Int(ge=0)
        if self.variadic and isinstance(number := specs.get(count), Int):
            number.le = 2**20  # every input has a name
        self.params = specs
        self.input_names = tuple(s.name for s in self.input_slots)
        checked("operator", self)
        self.parser = Parser(name, specs, self._finish, [s.name for s in self.input_slots])
        # Of an operator that holds graphs, `replay_rule` is ``(node, inputs) -> entries`` of its outputs after another
        # run, operator by operator, which the tape node has for its `call` from now on; `states_rule` gives, by
        # parameters, {input that is a state of an operator inside: whether it is written to beside backward}.
        self.shape_rule = self.dtype_rule = self.storage_rule = self.sparse_body = self.cost_rule = cast(Any, None)
        self.backward_rule = self.higher_rule = self.replay_rule = self.states_rule = cast(Any, None)
        self.gives = False  # a backward rule that takes None for no gradient, and keeps none of the arrays it returns
        #: Of a stateful operator: whether its backward ignores the gradients of its outputs.
        self.loss_rule: Callable[[Params], bool] = lambda p: False
        self.grad_rule: Any = checked("gradient rule", self, grad)
        self.doc = doc if doc is not None else (body.__doc__ if body is not None else None) or ""
        self.grad_plan: GradPlan | None = None  # compiled by the tape on first use
        self.bound: dict[Any, Any] = {}  # memoised by dispatch
        #: Parameters of a call without any, and how many inputs it takes; None where parameters are required.
        self.plain: Params | None = None
        if (
            not self.variadic
            and not any(s.condition for s in self.input_slots)
            and not any(s.required for s in specs.values())
        ):
            self.plain = self.parser({})
        self.__name__, self.__doc__ = name, self.doc
        #: What it tells passes of itself.
        self.facets: dict[str, Any] = {}
        self.attach(**facets)

    def _finish(self, p: Params) -> None:
        p._sig = Signature(self, p)

    # -- facets ------------------------------------------------------------------------------------------------
    def shape(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the shape rule: ``(p, ins, outs) -> (ins, outs)``, or forward only ``(p, ins) -> outs``.

        Shapes are tuples; None is an unknown shape, -1 an unknown dimension. A two-way rule returns what it can and
        None for the rest; the core merges it with what is known and names contradictions. A forward-only rule is
        called once all inputs are known. None for an output of fully known inputs makes it dynamic: known only by
        running. Without a rule all inputs and outputs have one shape.
        """
        self.shape_rule = checked("shape rule", self, rule)
        return rule

    def dtype(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the dtype rule, of the same two forms as :meth:`shape`, over dtypes; None is unknown.

        Without a rule all inputs and outputs have one dtype. The rule decides: results of the body are cast to it.
        """
        self.dtype_rule = checked("dtype rule", self, rule)
        return rule

    def storage(self, rule: Callable[..., Any], body: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """Attach the storage rule ``(p, stypes) -> stypes of the outputs``.

        An operator with one gets sparse inputs as they are; without one they are made dense first. With a `body`, calls
        with sparse inputs run that instead of the reference and of all kernels.
        """
        self.storage_rule, self.sparse_body = checked("storage rule", self, rule), body
        return rule

    def grad(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the gradient rule; its argument names say what it needs.

        ``F`` the operators (eager or graph), ``p`` the parameters, ``needs`` a tuple of bools (which inputs want a
        gradient), ``dy`` or ``d_<output>`` the incoming gradients, ``y`` or ``out_<output>`` outputs to keep, the
        name of an input to keep it, ``like_<input>`` to keep its shape and dtype only. It returns one gradient per
        input (a list for a variadic one), None for zero.
        """
        self.grad_rule, self.grad_plan = checked("gradient rule", self, rule), None
        return rule

    def higher(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Attach a gradient rule made of differentiable operators, which stands in for `grad` under ``create_graph``.

        It has the arguments of `grad`, may ask only for inputs and outputs that `grad` keeps, and sees arrays, so that
        it may read shapes. Operators whose `grad` is differentiable need none.
        """
        self.higher_rule = checked("gradient rule", self, rule)
        return rule

    def cost(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the cost estimate ``(p, ins, outs) -> number of scalar operations``; default: elements touched."""
        self.cost_rule = checked("cost rule", self, rule)
        return rule

    def backward(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Attach the backward of a stateful operator: ``(k, p, state, dys, ins, outs) -> gradients of the inputs``."""
        self.backward_rule = checked("backward rule", self, rule)
        return rule

    def attach(self, **facets: Any) -> None:
        """Attach facets by their names, as the options of :func:`op` do."""
        for name in facets.keys() - FACETS.keys():
            raise error(TypeError, f"operator {self.name}: no option or facet is named '{name}'{suggest(name, FACETS)}")
        for name in [n for n in FACETS if n in facets]:
            try:
                self.facets[name] = FACETS[name](self, facets[name])
            except Exception as e:
                plain = isinstance(e, (ValueError, TypeError))
                raise error(
                    type(e) if plain else ValueError,
                    f"operator {self.name}: {name}: {said(e) if plain else in_a_line(e)}",
                ) from e

    def facet(self, name: str, *given: Any, default: Any = None) -> Any:
        """What the operator says of itself, `given` parameters and what else the facet depends on; else `default`."""
        value = self.facets.get(name, default)
        try:
            return value(*given) if callable(value) else value
        except BaseException as e:
            raise error(RuntimeError, f"operator {self.name}: {name} failed: {in_a_line(caught(e))}") from e

    @cached_property
    def samples(self) -> list[Any]:
        """Uses of the operator. A function that gives them is called now; what declares it need not hold them."""
        return list(self.sampled() if callable(self.sampled) else self.sampled)

    # -- calls -------------------------------------------------------------------------------------------------
    def parse(self, kwargs: dict[str, Any]) -> Params:
        """Parse keyword parameters (a dict that may be consumed)."""
        return self.parser(kwargs)

    def signature(self, p: Params) -> Signature:
        """The inputs and outputs that these parameters select."""
        return p._sig

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Op.run(self, args, kwargs)

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


_OPTIONS = frozenset(
    "inputs outputs aliases aux mutates visible random stateful view alias count arg_names grad doc direct samples "
    "role params twin_of".split()
)


def op(name: str, *aliases: str, **kw: Any) -> Callable[[Callable[..., Any]], Op]:
    """Declare an operator around its reference body ``(k, p, *inputs)``.

    Parameters
    ----------
    name : str
        MXNet's name, the key in the registry.
    *aliases : str
        Further names.
    inputs, outputs : str
        Names separated by blanks, ``data`` and ``output`` unless told. ``bias[not no_bias]`` depends on parameters,
        ``args*`` takes any number, ``lhs~`` uses shape and dtype only. `outputs` may also be a function of the
        parameters.
    count : str
        The parameter that counts the inputs of ``args*``: ``num_args`` unless told. It is declared by itself.
    arg_names : callable
        Parameters -> names of the inputs of ``args*``, where neither ``arg0``, ``arg1``, … nor a count will do.
    params : dict of str to Param
        Parameters of the operator whose names are options of this function; all others are simply keywords.
    aux, mutates : str or callable
        Inputs that are auxiliary states; inputs for which the body returns new values after its outputs. Names
        separated by blanks, or a function from parameters to a sequence of them.
    visible : int or callable
        How many outputs a user sees (all).
    random : bool or callable
        Whether it draws a random key, for all parameters or as a function of them.
    stateful, view : bool
        Forward returns (outputs, state); returns its first input's memory.
    alias : str
        ``'data->output'``: the output may overwrite that input.
    grad : callable or None
        The gradient rule, as :meth:`Op.grad` attaches it; None says that the gradient is zero, nothing that there is
        none.
    doc : str
        Documentation, in the place of the body's docstring.
    direct : str
        The function of the array namespace that means the same, for a quicker call: ``'tanh'``, ``'divide:swap'`` with
        the arguments swapped, ``'exp:float'`` where that holds for floats only.
    samples : sequence of Sample, or a function that returns one
        Uses of the operator: what the conformance kit runs.
    role : str
        What the core uses it for (see :mod:`mxcore._core.roles`); one operator has each role.
    twin_of : (Op, callable)
        The operator whose kernels compute this one, too, for inputs of which ``(p, *specs)`` is true: there it means
        the same, and has the parameters that kernels read.
    **facets
        What passes must know of it; :mod:`mxcore.facets` says all of each. `expr`, `numbers`, `aligned`, `reduces`: its
        elementwise meaning, for fusion; `identity`: when it changes nothing; `bias`: where it is added; `recompute`:
        whether it is cheap; `rowwise`, `backward_of`: how gradients over many rows add up; `alike`: the gradients of
        two inputs of one shape; `labels`, `mxnet_outputs`: what MXNet calls its values; `precision_cast`: whether files
        leave it out; `written_as`: what files hold in its place; `together`: the operator that does for many weights
        what it does for one; `quantized`, `calibrates`: what it is over eight bits; `flops`: how much its products
        compute; `zeros_stay`: whether sparse values stay sparse; `helpers`: functions that its kernels want as well.
    **kw : Param
        Every other keyword is a parameter of the operator.

    Examples
    --------
    >>> from mxcore.plugin import op, Float
    >>> @op("my_scale", inputs="data", factor=Float(2.0), grad=lambda F, p, dy: F.my_scale(dy, factor=p.factor))
    ... def my_scale(k, p, data):
    ...     '''Multiply `data` by `factor`.'''
    ...     return data * p.factor
    >>> my_scale
    <Op my_scale>
    """
    options = {k: v for k, v in kw.items() if k in _OPTIONS or k in FACETS and not isinstance(v, Param)}
    params = {**options.pop("params", {}), **{k: v for k, v in kw.items() if k not in options and k != "params"}}
    for k, v in params.items():
        if not isinstance(v, Param):
            near = suggest(k, [*_OPTIONS, *FACETS]) or f", such as {k}=Float(2.0)"
            raise error(TypeError, f"operator {name}: {k}={v!r} is neither an option nor a parameter declaration{near}")
    return lambda body: Op(
        name,
        body,
        params=params,
        aliases=(*aliases, *(a.split() if isinstance(a := options.pop("aliases", ()), str) else a)),
        **options,
    )
