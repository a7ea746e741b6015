"""The class Executor: a symbol bound to arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._core import infer, tables, transfer
from .._core.array import Array, Storage, faces
from .._core.call import OpContext, check_dtypes
from .._core.context import Context, current_context
from .._core.errors import error, suggest
from .._core.graph import Node, topo
from .._core.kernels import Spec
from .._locks import writing
from ..ndarray import NDArray
from ..ndarray import zeros as nd_zeros
from ..ndarray.indexing import write
from ..ndarray.sparse import zeros
from . import watch
from .arguments import (
    as_lowered,
    from_buffer,
    groups_of,
    listed,
    naming_memory,
    overlapping,
    requests,
    scattered,
    simple_arrays,
)
from .compile import Compiled, compile_graph
from .describe import describe
from .instance import Instance
from .keep import stamps
from .launch import launch
from .passes.place import context_of, crossing, group_of, states_at
from .passes.settings import Settings, check_passed, run_passes
from .passes.simplify import merge_equal
from .program import Program, infer_all, undecided
from .replayed import instantiate

__all__ = ["Executor"]


class Executor:
    """A symbol bound to arrays: run it forward and backward. Made by ``Symbol.bind`` and ``Symbol.simple_bind``.

    Parameters
    ----------
    symbol : Symbol
    ctx : Context or None
        The current context if None.
    args, args_grad, aux_states : list or dict of NDArray
    grad_req : str, list or dict
    group2ctx : dict of str to Context, optional
        Where the nodes of a group (attribute ``ctx_group``) compute.
    shared_exec : Executor, optional
        One whose memory for temporary results this one may use; the two must not be between forward and backward at
        the same time.

    Attributes
    ----------
    arg_arrays, grad_arrays, aux_arrays, outputs : list of NDArray
        In the order of the symbol's lists; a gradient that is not wanted is None. The lists are the caller's: writing
        to an array counts, putting another one in its place does not.
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Any,
        args: Any,
        args_grad: Any,
        grad_req: Any,
        aux_states: Any,
        group2ctx: Mapping[str, Any] | None = None,
        shared_exec: Executor | None = None,
        made: bool = False,
    ) -> None:
        self._symbol = symbol
        self._heads = run_passes(symbol._heads)
        self._ctx = Context(ctx) if ctx is not None else current_context()
        names, aux = symbol.list_arguments(), symbol.list_auxiliary_states()
        for kind, found in (("argument", names), ("auxiliary state", aux)):
            twice = next((n for n, times in Counter(found).items() if times > 1), None)
            if twice:
                raise error(ValueError, f"bind: two {kind}s are named {twice!r}; names of variables must differ")
        self._arg_names, self._aux_names, self._output_names = names, aux, symbol.list_outputs()
        self._place_of = {n: i for i, n in enumerate(names)}
        self._groups = groups_of(group2ctx)
        #: Where the array of a variable may live: with who writes to it, or where its group does; anywhere in the graph
        #: if it has none.
        somewhere = list(dict.fromkeys((self._ctx, *self._groups.values())))
        where = {n.name: self._groups.get(group_of(n) or "") for n in topo(symbol._heads) if n.op is None}
        where.update(states_at(symbol._heads, self._ctx, self._groups))
        at = {name: [own] if own else somewhere for name, own in where.items()}.__getitem__
        self._args = listed(args, names, "args", False, at)
        self._aux = listed(aux_states, aux, "aux_states", False, at)
        self._reqs = requests(grad_req, names)
        beside = {n: [a.context] for n, a in zip(names, self._args)}
        self._grads = listed(args_grad, names, "args_grad", True, beside.__getitem__)
        for i, n in enumerate(names):
            if self._grads[i] is None:
                self._reqs[n] = "null"
            elif self._reqs[n] != "null" and tuple(self._grads[i].shape) != tuple(self._args[i].shape):
                raise error(
                    ValueError,
                    f"bind: the gradient of '{n}' has shape {self._grads[i].shape}, the argument {self._args[i].shape}",
                )
            elif self._reqs[n] != "null":
                transfer.check_writable(self._grads[i], f"bind: the gradient of '{n}'")
        self._wanted = [n for n in names if self._reqs[n] != "null"]
        #: Gradients that are computed elsewhere and copied in the end, as arguments or others lie in their memory, or
        #: as their elements do not lie one behind the other, which kernels want; none among arrays `made` here.
        self._overlapping_grads: set[str] = (
            set() if shared_exec is None else shared_exec._overlapping_grads.intersection(self._wanted)
        )
        #: Auxiliary states that training moves elsewhere, for the like reasons.
        self._overlapping_aux: set[str] = (
            set() if shared_exec is None else shared_exec._overlapping_aux.intersection(aux)
        )
        if not made:
            states, wanted = dict(zip(aux, self._aux)), {n: self._grads[self._place_of[n]] for n in self._wanted}
            self._overlapping_aux = overlapping(states, self._args) | scattered(states)
            self._overlapping_grads = overlapping(wanted, [*self._args, *self._aux]) | scattered(wanted)
        self._monitor: Callable[[str, Any], None] | None = None
        self._monitor_all = False
        self._instances: dict[Any, tuple[Compiled, Instance]] = {}
        self._settings = Settings.now()
        #: Memory of temporary results, (training, context, dtype) -> block; executors that share have one dict.
        self._blocks: dict[Any, Any] = shared_exec._blocks if shared_exec is not None else {}
        #: Stands for both for the engine, which orders the runs by it.
        self._memory: Storage = shared_exec._memory if shared_exec is not None else Storage(self._ctx)
        #: Memory of outputs, shared likewise.
        self._room: dict[str, Any] = shared_exec._room if shared_exec is not None else {}
        #: Parameters of stateful operators, which live as long as the executor.
        self._own: dict[Node, Any] = {}
        #: The last training run, the keys it drew, and whether its values are still whole; None after a run in predict
        #: mode.
        self._pending: tuple[tuple[Compiled, Instance], list[Any], bool] | None = None
        #: Variable -> what it held before the last forward wrote to it.
        self._before: dict[str, Any] = {}
        pairs = [*zip(names, self._args), *zip(aux, self._aux)]
        self._facts = (
            {n: tuple(a.shape) for n, a in pairs},
            {n: a._data.dtype for n, a in pairs},
            {n: a.stype for n, a in pairs},
        )
        self._places = {n: a.context for n, a in pairs if a.context is not self._ctx}
        check_passed(symbol._heads, self._heads, *self._facts[:2])
        self._out_facts = infer_all(self._heads, *self._facts)
        self._outs: list[Any] = self._make_outputs()

    @classmethod
    def simple_bind(
        cls,
        symbol: Any,
        ctx: Any,
        grad_req: Any,
        type_dict: Mapping[str, Any] | None,
        shapes: Mapping[str, Any],
        group2ctx: Mapping[str, Any] | None = None,
        stype_dict: Mapping[str, str] | None = None,
        shared_exec: Executor | None = None,
        shared_buffer: dict[str, Any] | None = None,
        shared_arg_names: Sequence[str] | None = None,
    ) -> Executor:
        """Make the arrays, then bind; see ``Symbol.simple_bind``."""
        ctx = Context(ctx) if ctx is not None else current_context()
        groups = groups_of(group2ctx)
        reqs = requests(grad_req, symbol.list_arguments())
        args, grads, aux = simple_arrays(
            symbol,
            ctx,
            reqs,
            type_dict or {},
            shapes,
            groups,
            stype_dict or {},
            shared_exec,
            shared_buffer,
            shared_arg_names or (),
        )
        return cls(symbol, ctx, args, grads, reqs, aux, group2ctx, shared_exec, made=True)

    # -- programs ----------------------------------------------------------------------------------------------
    def _make_outputs(self) -> list[Any]:
        shapes, dtypes, stypes = self._out_facts
        made: list[Any] = []
        for e in self._heads:
            ctx = self._head_context(e)
            if dtypes.get(e) is None and (missing := undecided([e], dtypes)):
                raise missing
            if e[0].op is not None:
                check_dtypes(e[0].op, ctx.device, [Spec(shapes.get(e), dtypes[e])])
            if infer.known(shapes.get(e)) and stypes[e] == "default":
                ctx.activate()
                with naming_memory(f"output {e[1]} of node '{e[0].name}'"):
                    made.append(from_buffer(self._room, f"output {len(made)}", shapes[e], dtypes[e], ctx, fill=False))
            else:
                made.append(None)
        return made

    def _head_context(self, e: Any) -> Context:
        return context_of(e[0], self._ctx, self._groups, self._places)

    def _instance(self, train: bool, is_train: bool) -> tuple[Compiled, Instance]:
        """The program for what is asked, bound to memory of its own."""
        monitored = self._monitor is not None
        key = (train, is_train, monitored)
        found = self._instances.get(key)
        if found is None:
            heads, wrt = self._heads, self._wanted if train else None
            if monitored:
                heads = self._shown_heads()
                shapes, dtypes, stypes = infer_all(heads, *self._facts)
                if train:  # a monitor is told all gradients of an operator, also those that nobody wants
                    wrt = [
                        *self._wanted,
                        *(n for n in self._arg_names if n not in self._wanted and self._facts[1][n].kind == "f"),
                    ]
                    heads = watch.probed(heads, dtypes, stypes)
                else:
                    heads = [*heads, *watch.hidden(heads, shapes, stypes)]
            compiled = compile_graph(
                heads,
                self._facts,
                self._ctx,
                is_train,
                wrt,
                [n for n in self._wanted if self._reqs[n] == "add"],
                self._groups,
                self._places,
                monitored,
                self._settings,
            )
            program = compiled.program
            watch.alias_states(self._own, program.steps)
            instance = instantiate(program, {k[1:]: b for k, b in self._blocks.items() if k[0] == train}, self._own)
            if monitored:
                own = {*range(len(self._outs)), *compiled.grads[: len(self._wanted)]}  # whose arrays the executor has
                for i, (e, slot) in enumerate(zip(program.graph.heads, program.head_slots)):
                    if i in own or program.claimed.get(slot) != i:
                        continue
                    spec, ctx = program.specs[slot], program.context(e[0])
                    instance.env[slot] = ctx.device.empty(spec.shape, spec.dtype, ctx.device_id)
            else:
                self._blocks.update({(train, *k): b for k, b in instance.blocks.items()})
            found = self._instances[key] = (compiled, instance)
        return found

    def prepare(self, is_train: bool) -> None:
        """Compile the program and take its memory now, instead of at the first forward."""
        self._instance(is_train and bool(self._wanted), is_train)

    # -- running -----------------------------------------------------------------------------------------------
    def forward(self, is_train: bool = False, **kwargs: Any) -> list[Any]:
        """Compute the outputs.

        Parameters
        ----------
        is_train : bool
            Training mode; needed before `backward`.
        **kwargs : array_like
            New values of arguments, by name.

        Returns
        -------
        list of NDArray
            The outputs; the same arrays at every call, in a list that is the caller's.
        """
        for name, value in kwargs.items():
            if name not in self._place_of:
                raise error(TypeError, f"forward: no argument is named {name!r}{suggest(name, self._arg_names)}")
            target = self._args[self._place_of[name]]
            if tuple(np.shape(value)) != tuple(target.shape):
                raise error(
                    ValueError,
                    f"forward: '{name}' has shape {tuple(np.shape(value))}, "
                    f"it was bound with {target.shape}; use reshape()",
                )
            write(target, value)
        is_train = bool(is_train)
        train = is_train and bool(self._wanted)
        found = self._instance(train, is_train)
        keys = found[1].keys(0)
        self._before = {n: a.copy() for n, a in self._written(found[0].program).items()} if self._wanted else {}
        # If it fails half-way, a backward computes again what the gradients need.
        self._pending = (found, [*keys], False) if train else None
        self._run(found, 0, keys, [], self._outs)
        if train:
            self._pending = found, keys, True
        return [*self._outs]

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients into `grad_arrays`, best after ``forward(is_train=True)``.

        After a forward in predict mode, or a second time, what the gradients need is computed again.

        Parameters
        ----------
        out_grads : NDArray, list or dict of NDArray, optional
            Gradients of the outputs; only loss operators do without.
        is_train : bool
            The training mode of gradient operators, whatever that of `forward` was: ``BatchNorm``'s depends on it.

        Raises
        ------
        MXNetError
            If an output that is no loss gets no gradient.
        """
        if not self._wanted:
            return
        if out_grads is None:
            given: list[Any] = [None] * len(self._outs)
        elif isinstance(out_grads, Array):
            given = [out_grads]
        elif isinstance(out_grads, dict):
            given = [out_grads.get(n) for n in self._output_names]
        else:
            given = [*out_grads] if isinstance(out_grads, (list, tuple)) else [out_grads]
        # As in MXNet losses may be left out at the end, and hidden outputs be listed there.
        given += [None] * (len(self._outs) - len(given))
        if self._pending is None:
            found = self._instance(True, False)
            self._pending = found, found[1].keys(0), False
        found, keys, whole = self._pending
        head_grads = []
        for name, label, g, y in zip(found[0].head_grads, self._output_names, given, self._outs):
            if name is None:
                continue  # nothing reads it
            if g is None:
                raise error(
                    ValueError,
                    f"backward: output {label} is no loss and needs a gradient; pass out_grads, or make it a "
                    "loss with mx.sym.make_loss()",
                )
            if not isinstance(g, Array):
                raise error(TypeError, f"backward: gradient of {label} must be an NDArray, got {type(g).__name__}")
            if tuple(g.shape) != tuple(y.shape):
                raise error(
                    ValueError, f"backward: gradient of {label} has shape {tuple(g.shape)}, the output {y.shape}"
                )
            head_grads.append((name, as_lowered(g).as_in_context(y.context).astype(y.dtype, copy=False)))
        targets = {n: self._grads[self._place_of[n]] for n in self._wanted}
        if head_grads:  # losses have none
            overwritten = overlapping({id(g._data): g for _, g in head_grads}, targets.values())
            head_grads = [(n, g.copy() if id(g._data) in overwritten else g) for n, g in head_grads]
        places = {n: a.zeros_like() if n in self._overlapping_grads else a for n, a in targets.items()}
        if not whole:  # never computed, or an earlier backward has used up the memory
            self._run(found, 0, keys, [], self._outs, again=True)
        self._pending = found, keys, False
        more = found[1].keys(1)

        def run() -> None:
            self._run(found, 1, more, head_grads, [*places.values()], bool(is_train))
            for n in filter(self._overlapping_grads.__contains__, targets):
                write(targets[n], targets[n] + places[n] if self._reqs[n] == "add" else places[n])

        writing([a for n, a in targets.items() if self._reqs[n] == "add"], run)

    def _run(
        self,
        found: tuple[Compiled, Instance],
        part: int,
        keys: list[Any],
        head_grads: list[tuple[str, Any]],
        targets: list[Any],
        is_train: bool | None = None,
        again: bool = False,
    ) -> None:
        """Run one part, inline or through the engine.

        `targets` are what it writes, beside the auxiliary states (those that nodes write to; in training mode all),
        unless it is run `again`.
        """
        compiled, instance = found
        program = compiled.program
        train = program.is_train if is_train is None else is_train
        before, written = self._before, self._written(program)

        def at(n: str, a: Any) -> Any:
            """Where an auxiliary state is moved."""
            if again:
                return before.get(n, a).copy() if n in written else a
            return a.copy() if n in self._overlapping_aux and (train or n in written) else a

        states = {n: at(n, a) for n, a in zip(self._aux_names, self._aux)}
        args = dict(zip(self._arg_names, self._args))
        if again:
            args.update((n, before.get(n, a).copy()) for n, a in written.items() if n in args)
        given = [*args.items(), *states.items(), *head_grads]
        heads = range(len(self._outs)) if part == 0 else compiled.grads
        # The second part reads what the first has left: where that failed, so does this.
        reads = [*(a._st for _, a in given), *([self._memory] if part else [])]
        moved = [a for n, a in {**states, **args}.items() if n in written or train and n in states]
        writes = [*(a._st for a in (*targets, *moved) if a is not None), self._memory]
        monitor = self._monitor
        if train:
            for name, a in zip(self._aux_names, self._aux):
                transfer.check_writable(a, f"training moves the auxiliary state '{name}'")
        for name, a in written.items():
            transfer.check_writable(a, f"an operator writes to '{name}'")

        slots = program.variables
        noted = stamps([(slots[n], a) for n, a in given if slots.get(n) in program.keeping])

        def work(where: str) -> None:
            places = [
                (
                    h,
                    a._data
                    if a.stype == "default"
                    else self._dense_place(program.specs[program.head_slots[h]], a.context),
                )
                for h, a in zip(heads, targets)
                if h is not None and a is not None
            ]
            instance.note(noted)
            instance.bind(
                part,
                [(slots[n], a._data) for n, a in given if n in slots],
                [place for place in places if place[1] is not None],
                train,
            )
            instance.run(part, keys, where)
            self._take(instance, part, heads, targets)
            if monitor is None and (part == 1 or len(program.steps) == program.split):
                instance.forget()

        # A sparse array gets other parts, which readers take at once: it must never be with the engine.
        now = monitor is not None or any(a is not None and a.stype != "default" for a in targets)
        launch(program, part, self._ctx, work, reads, writes, now=now, train=train)
        for n, a in zip(self._aux_names, self._aux):
            if not again and states[n] is not a:
                write(a, states[n])
        if monitor is not None:
            self._report(instance, part)

    def _written(self, program: Program) -> dict[str, Any]:
        """The variables that the first part of a program writes to."""
        slots = program.written[0]
        if not slots:
            return {}
        rows = [*zip(self._arg_names, self._args), *zip(self._aux_names, self._aux)]
        return {n: a for n, a in rows if program.variables.get(n, -1) in slots}

    def _take(self, instance: Instance, part: int, heads: Any, targets: list[Any]) -> None:
        """Hand over what steps could not write: sparse and dynamic values, and zeros where no gradient came."""
        program = instance.program
        for i, (head, target) in enumerate(zip(heads, targets)):
            slot = None if head is None else program.head_slots[head]
            if slot is not None and program.specs[slot].fixed and target.stype == "default":
                continue
            value = None if head is None else instance.loose(head)
            if part == 0:
                self._outs[i] = faces[getattr(value, "stype", "default")](
                    value, Storage(self._head_context(self._heads[i]))
                )
            else:
                self._store_gradient(target, value, self._reqs[self._wanted[i]])

    @staticmethod
    def _dense_place(spec: Any, ctx: Context) -> Any:
        """Zeros where a dense gradient arrives that belongs into a sparse array; None for a sparse one."""
        return ctx.device.full(spec.shape, 0, spec.dtype, ctx.device_id) if spec.fixed else None

    @staticmethod
    def _store_gradient(target: Any, value: Any, req: str) -> None:
        """Write or add a sparse gradient, or zeros if there is none."""
        ctx, data = target.context, target._data
        if value is None:
            if req == "write":
                # An operator would be handed to the engine, maybe to the very worker that runs this.
                dense = target.stype == "default"
                nothing = (
                    ctx.device.full(target.shape, 0, data.dtype, ctx.device_id)
                    if dense
                    else zeros(target.stype, target.shape, ctx, data.dtype)._data
                )
                transfer.store(ctx.device, nothing, target)
            return
        if req == "add":
            add = tables.roles.get("sum of gradients").sparse_body
            assert add is not None  # who has this role adds arrays of any storage type
            value = add(OpContext(ctx, True), None, data, value)
        transfer.store(ctx.device, value, target)

    # -- other shapes ------------------------------------------------------------------------------------------
    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> Executor:
        """An executor of the same symbol for other shapes, sharing arrays and memory with this one.

        Parameters
        ----------
        partial_shaping : bool
            Allow arguments that are not named to change their shape.
        allow_up_sizing : bool
            Allow new arrays where the old ones are too small.
        **kwargs : tuple of int
            New shapes of arguments.

        Returns
        -------
        Executor

        Raises
        ------
        MXNetError
            If a shape would change or grow that must not; names the argument.
        """
        args, _, aux = self._symbol.infer_shape(**kwargs)
        if args is None:
            raise error(ValueError, f"reshape: not all shapes follow from {kwargs}; give more of them")

        def fit(name: str, old: Any, shape: Any, given: bool) -> Any:
            if old is None or tuple(old.shape) == tuple(shape):
                return old
            if not given and not partial_shaping:
                raise error(
                    ValueError,
                    f"reshape: '{name}' would change its shape from {old.shape} to {shape}; "
                    "name it too, or pass partial_shaping=True",
                )
            if old.stype != "default":  # nothing is in it until values come
                return zeros(old.stype, shape, old.context, old.dtype)
            n = int(np.prod(shape))
            if n > old.size:
                if not allow_up_sizing:
                    raise error(
                        ValueError,
                        f"reshape: '{name}' of shape {shape} needs more memory than {old.shape}; pass "
                        "allow_up_sizing=True for a new array",
                    )
                return nd_zeros(shape, ctx=old.context, dtype=old.dtype)
            return NDArray(old._data.reshape(-1)[:n].reshape(shape), old._st)

        rows = list(zip(self._arg_names, args))
        new = [fit(n, a, s, n in kwargs) for (n, s), a in zip(rows, self._args)]
        grads = [fit(n, g, s, n in kwargs) for (n, s), g in zip(rows, self._grads)]
        states = [fit(n, a, s, False) for n, a, s in zip(self._aux_names, self._aux, aux)]
        return Executor(self._symbol, self._ctx, new, grads, dict(self._reqs), states, self._groups, self)

    def share_outputs(self, other: Executor) -> None:
        """Put the outputs where those of another executor are, if they fit: the two never run at the same time."""
        for i, (mine, theirs) in enumerate(zip(self._outs, other._outs)):
            if (
                mine is None
                or theirs is None
                or mine.dtype != theirs.dtype
                or mine.context != theirs.context
                or mine.size > theirs.size
            ):
                continue
            self._outs[i] = NDArray(theirs._data.reshape(-1)[: mine.size].reshape(mine.shape), theirs._st)

    # -- views -------------------------------------------------------------------------------------------------
    @property
    def arg_arrays(self) -> list[Any]:
        """Arguments, in the order of the symbol."""
        return [*self._args]

    @property
    def grad_arrays(self) -> list[Any]:
        """Gradients, in the order of their arguments, or None: the arrays that were bound."""
        return [*self._grads]

    @property
    def aux_arrays(self) -> list[Any]:
        """Auxiliary states, in the order of the symbol."""
        return [*self._aux]

    @property
    def outputs(self) -> list[Any]:
        """Outputs, in the order of the symbol."""
        return [*self._outs]

    @property
    def arg_dict(self) -> dict[str, Any]:
        """Arguments by name."""
        return dict(zip(self._arg_names, self._args))

    @property
    def grad_dict(self) -> dict[str, Any]:
        """Gradients by name of their argument: the arrays that were bound, or None."""
        return dict(zip(self._arg_names, self._grads))

    @property
    def aux_dict(self) -> dict[str, Any]:
        """Auxiliary states by name."""
        return dict(zip(self._aux_names, self._aux))

    @property
    def output_dict(self) -> dict[str, Any]:
        """Outputs by name."""
        return dict(zip(self._output_names, self._outs))

    def copy_params_from(
        self, arg_params: dict[str, Any], aux_params: dict[str, Any] | None = None, allow_extra_params: bool = False
    ) -> None:
        """Copy values into arguments and auxiliary states by name."""
        for given, have, kind in (
            (arg_params, self.arg_dict, "argument"),
            (aux_params or {}, self.aux_dict, "auxiliary state"),
        ):
            for name, value in given.items():
                if name in have:
                    if tuple(np.shape(value)) != tuple(have[name].shape):
                        raise error(
                            ValueError,
                            f"copy_params_from: {kind} '{name}' has shape {have[name].shape}, the value given "
                            f"{tuple(np.shape(value))}",
                        )
                    write(have[name], value)
                elif not allow_extra_params:
                    raise error(
                        ValueError,
                        f"copy_params_from: no {kind} is named {name!r}{suggest(name, have)}; "
                        "pass allow_extra_params=True to ignore it",
                    )

    def set_monitor_callback(self, callback: Callable[[str, Any], None] | None, monitor_all: bool = False) -> None:
        """Call ``callback(name, array)`` with every output of every node, hidden or not, and every gradient.

        Names are MXNet's: ``fc1_output``, ``bn_mean``, ``fc1_backward_output1`` for the gradient of the second input of
        ``fc1``, and ``sum_grad_output`` where the gradients of several readers are added. Gradients that nobody needs
        have no row.

        Parameters
        ----------
        callback : callable or None
            A monitored program computes every node by itself; None goes back to the fast one.
        monitor_all : bool
            Show the inputs of nodes too, as ``fc1_data``, and variables once more by their own names.

        Examples
        --------
        >>> import mxcore as mx
        >>> exe = mx.sym.exp(mx.sym.Variable("x"), name="e").simple_bind(mx.cpu(), x=(2,))
        >>> exe.set_monitor_callback(lambda name, array: print(name, array.asnumpy()), monitor_all=True)
        >>> _ = exe.forward()
        x [0. 0.]
        e_input0 [0. 0.]
        e_output [1. 1.]
        """
        self._monitor, self._monitor_all = callback, monitor_all

    def _report(self, instance: Instance, part: int) -> None:
        program = instance.program
        rows = (
            watch.forward_rows(program.steps[: program.split], self._monitor_all)
            if part == 0
            else watch.backward_rows(
                program.graph.heads[: program.n_first],
                program.steps[: program.split],
                program.steps[program.split :],
                self._wanted,
            )
        )
        for name, slot, step in rows:
            value = instance.env[slot]
            if part and step.op is watch.probe:  # nothing flows there
                value = step.ctx.device.full(value.shape, 0, value.dtype, step.ctx.device_id)
            monitor = self._monitor  # which may take itself away
            if value is not None and monitor is not None:
                ctx = step.p.source if step.op is crossing and slot in step.ins else step.ctx
                ctx.activate()
                # The next run writes to it again, and the callback may keep what it gets.
                copied = value.copy() if getattr(value, "stype", "default") == "default" else value
                monitor(name, transfer.wrap(copied, ctx))

    def _shown_heads(self) -> Any:
        """The graph as MXNet would show it: what is equal is there once."""
        return merge_equal(self._heads) if self._settings.merge else self._heads

    def get_optimized_symbol(self) -> Any:
        """The symbol as the passes of plugins left it, with equal operators made one; the rest is in `debug_str`."""
        return type(self._symbol)(self._shown_heads())

    def debug_str(self) -> str:
        """The steps of the program with their memory, and the bytes that were planned, in the third line from the end.

        Examples
        --------
        >>> import mxcore as mx
        >>> net = mx.sym.tanh(mx.sym.Variable("x"), name="t")
        >>> print(net.simple_bind(mx.cpu(), x=(2, 2), grad_req="null").debug_str().split("\\n")[-3])
        Total 0 MB allocated
        """
        compiled, _ = self._instance(bool(self._wanted), bool(self._wanted))
        return describe(compiled.program)

    def __repr__(self) -> str:
        return f"<Executor of {self._symbol!r} on {self._ctx}>"
