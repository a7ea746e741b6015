"""The class Executor: a symbol bound to arrays."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import dispatch, infer, transfer
from .._core.array import Array, Storage, faces
from .._core.context import Context, current_context
from .._core.engine import engine
from .._core.errors import error, suggest
from .._core.gradient import gradient
from .._core.graph import topo, variable
from .._core.state import state
from ..ndarray import NDArray
from ..ndarray import zeros as nd_zeros
from ..ndarray.indexing import write
from .passes import run_passes
from .program import Program, infer_all

__all__ = ["Executor"]

_STYPES = {"0": "default", "1": "row_sparse", "2": "csr"}


class Executor:
    """A symbol bound to arrays: run it forward and backward. Made by ``Symbol.bind`` and ``Symbol.simple_bind``.

    Attributes
    ----------
    arg_arrays, grad_arrays, aux_arrays, outputs : list of NDArray
        In the order of the symbol's lists; a gradient that is not wanted is None.
    """

    def __init__(self, symbol: Any, ctx: Any, args: Any, args_grad: Any, grad_req: Any, aux_states: Any) -> None:
        self._symbol = symbol
        self._heads = run_passes(symbol._heads)
        self._ctx = Context(ctx) if ctx is not None else current_context()
        names, aux = symbol.list_arguments(), symbol.list_auxiliary_states()
        for kind, listed in (("argument", names), ("auxiliary state", aux)):
            twice = next((n for n in listed if listed.count(n) > 1), None)
            if twice:
                raise error(ValueError, f"bind: two {kind}s are named {twice!r}; names of variables must differ")
        self._arg_names, self._aux_names, self._output_names = names, aux, symbol.list_outputs()
        self.arg_arrays = self._listed(args, names, "args", False)
        self.aux_arrays = self._listed(aux_states, aux, "aux_states", False)
        self._reqs = self._requests(grad_req, names)
        self.grad_arrays = self._listed(args_grad, names, "args_grad", True)
        for i, n in enumerate(names):
            if self.grad_arrays[i] is None:
                self._reqs[n] = "null"
            elif self._reqs[n] == "null":
                self.grad_arrays[i] = None
        self._monitor: Callable[[str, Any], None] | None = None
        self._monitor_all = False
        self._programs: dict[Any, Program] = {}
        self._env: list[Any] | None = None
        self._infer()
        self.outputs: list[Any] = self._make_outputs()

    # -- what it was given -------------------------------------------------------------------------------------
    def _listed(self, given: Any, names: list[str], what: str, optional: bool) -> list[Any]:
        if given is None:
            given = [None] * len(names) if optional or not names else {}
        if isinstance(given, dict):
            missing = [n for n in names if n not in given]
            if missing and not optional:
                raise error(ValueError, f"bind: {what} lacks {missing}; given: {sorted(given)}")
            arrays = [given.get(n) for n in names]
        else:
            arrays = list(given)
            if len(arrays) != len(names):
                raise error(ValueError, f"bind: {what} has {len(arrays)} arrays, the symbol {len(names)}: {names}")
        for n, a in zip(names, arrays):
            if a is None and optional:
                continue
            if not isinstance(a, Array):
                raise error(TypeError, f"bind: {what} '{n}' must be an NDArray, got {type(a).__name__}")
            if a.context is not self._ctx:
                raise error(ValueError, f"bind: {what} '{n}' lives on {a.context}, the executor on {self._ctx}")
        return arrays

    @staticmethod
    def _requests(grad_req: Any, names: list[str]) -> dict[str, str]:
        if isinstance(grad_req, str):
            reqs = dict.fromkeys(names, grad_req)
        elif isinstance(grad_req, dict):
            reqs = {n: grad_req.get(n, "null") for n in names}
        else:
            if len(grad_req) != len(names):
                raise error(ValueError, f"bind: {len(grad_req)} grad_reqs for {len(names)} arguments")
            reqs = dict(zip(names, grad_req))
        for n, r in reqs.items():
            if r not in ("write", "add", "null"):
                raise error(ValueError, f"bind: grad_req of '{n}' must be 'write', 'add' or 'null', got {r!r}")
        return reqs

    @classmethod
    def simple_bind(cls, symbol: Any, ctx: Any, grad_req: Any, type_dict: dict[str, Any], shapes: dict[str, Any]) -> Executor:
        """Make the arrays, then bind; see ``Symbol.simple_bind``."""
        ctx = Context(ctx) if ctx is not None else current_context()
        names = symbol.list_arguments()
        from ..symbol.symbol import _unknown_dims

        found = symbol._infer("shape", symbol._named((), shapes, _unknown_dims))
        types = symbol._complete_types(symbol._named((), type_dict, np.dtype))
        args_, aux_ = symbol._variables()
        open_ = [n.name for n in (*args_, *aux_) if not infer.known(found.get((n, 0)))]
        if open_:
            raise error(ValueError, f"simple_bind: the shapes of {open_} cannot be inferred from "
                                    f"{ {k: tuple(v) for k, v in shapes.items()} }; give them too")
        reqs = cls._requests(grad_req, names)
        stypes = {n.name: _STYPES.get(n.attrs.get("__storage_type__", "0"), "default") for n in args_}

        def make(n: Any) -> NDArray:
            return nd_zeros(found[n, 0], ctx=ctx, dtype=types[n, 0])

        args = [make(n) for n in args_]
        grads = [None] * len(names)
        if any(r != "null" for r in reqs.values()):
            kinds = cls._grad_stypes(symbol, reqs, found, types, stypes)
            grads = [None if reqs[n.name] == "null" else
                     nd_zeros(found[n, 0], ctx=ctx, dtype=types[n, 0], stype=kinds.get(n.name)) for n in args_]  # type: ignore[misc]
        return cls(symbol, ctx, args, grads, reqs, [make(n) for n in aux_])

    @staticmethod
    def _grad_stypes(symbol: Any, reqs: dict[str, str], shapes: Any, types: Any, stypes: dict[str, str]) -> dict[str, str]:
        """Storage types of the gradients, from the gradient graph."""
        args_, _ = symbol._variables()
        wrt = [(n, 0) for n in args_ if reqs[n.name] != "null"]
        heads = [variable(f"_head_grad{i}") for i in range(len(symbol._heads))]
        try:
            grads = gradient(symbol._heads, [(h, 0) for h in heads], wrt)
        except Exception:  # an operator without gradient: forward still works
            return {}
        known = [g for g in grads if g is not None]
        by_name = {n.name: shapes[n, 0] for n in args_}
        by_name.update({h.name: shapes.get(e) for h, e in zip(heads, symbol._heads)})
        names = {n.name: types[n, 0] for n in args_}
        names.update({h.name: types.get(e) for h, e in zip(heads, symbol._heads)})
        _, _, st = infer_all(known, by_name, names, {})
        return {n.name: st[g] for (n, _), g in zip(wrt, grads) if g is not None}

    # -- programs ----------------------------------------------------------------------------------------------
    def _infer(self) -> None:
        pairs = [*zip(self._arg_names, self.arg_arrays), *zip(self._aux_names, self.aux_arrays)]
        self._given = ({n: tuple(a.shape) for n, a in pairs}, {n: a._data.dtype for n, a in pairs}, {n: a.stype for n, a in pairs})
        self._facts = infer_all(self._heads, *self._given)

    def _make_outputs(self) -> list[Any]:
        shapes, dtypes, stypes = self._facts
        made: list[Any] = []
        for e in self._heads:
            if infer.known(shapes.get(e)) and stypes[e] == "default":
                device = self._ctx.device
                made.append(NDArray(device.empty(shapes[e], dtypes[e], self._ctx.device_id), Storage(self._ctx)))
            else:
                made.append(None)
        return made

    def _variables(self) -> dict[str, int]:
        return {n: i for i, n in enumerate([*self._arg_names, *self._aux_names])}

    def _forward_program(self, is_train: bool) -> Program:
        key = ("forward", is_train)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = Program(self._heads, self._variables(), *self._facts, self._ctx, is_train)
        return program

    def _training_program(self) -> Program:
        program = self._programs.get("train")
        if program is None:
            heads = self._heads
            args_, _ = self._symbol._variables()
            self._wanted = [n.name for n in args_ if self._reqs[n.name] != "null"]
            # A pass may have put other nodes in the place of the symbol's variables; names decide.
            here = {n.name: n for n in topo(heads) if n.op is None}
            wrt = [(here.get(n.name, n), 0) for n in args_ if self._reqs[n.name] != "null"]
            ins = [variable(f"_head_grad{i}") for i in range(len(heads))]
            grads = gradient(heads, [(h, 0) for h in ins], wrt)
            slots = self._variables()
            given = tuple(dict(d) for d in self._given)
            for h, e in zip(ins, heads):
                slots[h.name] = len(slots)
                given[0][h.name], given[1][h.name] = self._facts[0].get(e), self._facts[1].get(e)
            every = [*heads, *[g for g in grads if g is not None]]
            # Head gradients that no rule reads still need their slots.
            program = Program(every, slots, *infer_all(every, *given), self._ctx, True, before=topo(heads))
            self._head_slots = [slots[h.name] for h in ins]
            self._grad_slots = [None if g is None else program.slot[g] for g in grads]
            self._programs["train"] = program
        return program

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
            The outputs; the same arrays at every call.
        """
        for name, value in kwargs.items():
            if name not in self._arg_names:
                raise error(TypeError, f"forward: no argument is named {name!r}{suggest(name, self._arg_names)}")
            target = self.arg_arrays[self._arg_names.index(name)]
            if tuple(np.shape(value)) != tuple(target.shape):
                raise error(ValueError, f"forward: '{name}' has shape {tuple(np.shape(value))}, it was bound with {target.shape}; "
                                        "use reshape()")
            write(target, value)
        train = is_train and any(r != "null" for r in self._reqs.values())
        program = self._training_program() if train else self._forward_program(is_train)
        env = self._fill(program)
        self._run(program, env, "first" if train else "all", lambda: self._take_outputs(program, env),
                  [a for a in self.outputs if a is not None] + self.aux_arrays)
        self._env = env if train else None
        return self.outputs

    def _fill(self, program: Program) -> list[Any]:
        env: list[Any] = [None] * program.n_slots
        for i, a in enumerate((*self.arg_arrays, *self.aux_arrays)):
            env[i] = a._data
        return env

    def _run(self, program: Program, env: list[Any], part: str, after: Callable[[], None], writes: list[Any]) -> None:
        reads = [a._st for a in (*self.arg_arrays, *self.aux_arrays)]
        targets = [w._st for w in writes if w is not None]
        record: list[Any] | None = [] if self._monitor is not None else None
        for st in targets:
            st.version += 1
        sync = program.sync or record is not None or self._ctx.device.async_
        busy = any(st.write is not None for st in reads) or any(st.write is not None or st.reads for st in targets)
        if not sync and (busy or (engine.it.parallel and program.work > engine.it.work_limit)):
            # Sparse outputs and dynamic shapes were ruled out: everything has its place already.
            def work() -> None:
                program.run(env, part)
                after()

            engine.it.push(self._ctx, work, reads, targets, "program")
            return
        for st in reads:
            st.wait()
        for st in targets:
            st.wait_free()
        was = (state.record, state.train)
        state.record = False
        try:
            program.run(env, part, record)
            after()
        finally:
            state.record, state.train = was
        if record is not None:
            self._report(record)

    def _take_outputs(self, program: Program, env: list[Any]) -> None:
        device = self._ctx.device
        for i, slot in enumerate(program.head_slots[:len(self.outputs)]):
            v, old = env[slot], self.outputs[i]
            if old is not None and getattr(v, "stype", "default") == "default":
                if tuple(old._data.shape) == tuple(v.shape):
                    device.copy(v, old._data)
                    continue
            self.outputs[i] = faces[getattr(v, "stype", "default")](v, Storage(self._ctx))

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients into `grad_arrays`, after ``forward(is_train=True)``.

        Parameters
        ----------
        out_grads : NDArray, list or dict of NDArray, optional
            Gradients of the outputs; ones unless told (loss operators ignore them).
        """
        if self._env is None:
            if not any(r != "null" for r in self._reqs.values()):
                return
            raise error(RuntimeError, "backward needs forward(is_train=True) before it")
        program, env = self._programs["train"], self._env
        if out_grads is None:
            given: list[Any] = [None] * len(self.outputs)
        elif isinstance(out_grads, Array):
            given = [out_grads]
        elif isinstance(out_grads, dict):
            given = [out_grads.get(n) for n in self._output_names]
        else:
            given = list(out_grads)
        if len(given) != len(self.outputs):
            raise error(ValueError, f"backward: {len(given)} gradients for {len(self.outputs)} outputs {self._output_names}")
        xp = self._ctx.device.xp
        reads = []
        for slot, g, y, name in zip(self._head_slots, given, self.outputs, self._output_names):
            if g is None:
                env[slot] = xp.ones(y._data.shape, y._data.dtype)
            else:
                if tuple(g.shape) != tuple(y.shape):
                    raise error(ValueError, f"backward: gradient of {name} has shape {tuple(g.shape)}, the output {y.shape}")
                g = g.as_in_context(self._ctx)
                reads.append(g._st)
                env[slot] = g._data
        for st in (*reads, *(a._st for a in self.outputs)):
            st.wait()
        grads = [self.grad_arrays[self._arg_names.index(n)] for n in self._wanted]

        def after() -> None:
            device = self._ctx.device
            for name, slot, target in zip(self._wanted, self._grad_slots, grads):
                v = xp.zeros(target._data.shape, target._data.dtype) if slot is None or env[slot] is None else env[slot]
                if self._reqs[name] == "add":
                    F = dispatch.K(self._ctx, True)
                    from .._core.builtin import grad_add

                    v = grad_add.body(F, None, target._data, v)  # type: ignore[misc]
                transfer.store(device, v, target)

        self._env = None
        self._run(program, env, "second", after, [*grads, *self.aux_arrays])

    # -- views -------------------------------------------------------------------------------------------------
    @property
    def arg_dict(self) -> dict[str, Any]:
        """Arguments by name."""
        return dict(zip(self._arg_names, self.arg_arrays))

    @property
    def grad_dict(self) -> dict[str, Any]:
        """Gradients by name of their argument; None where none is wanted."""
        return dict(zip(self._arg_names, self.grad_arrays))

    @property
    def aux_dict(self) -> dict[str, Any]:
        """Auxiliary states by name."""
        return dict(zip(self._aux_names, self.aux_arrays))

    @property
    def output_dict(self) -> dict[str, Any]:
        """Outputs by name."""
        return dict(zip(self._output_names, self.outputs))

    def copy_params_from(self, arg_params: dict[str, Any], aux_params: dict[str, Any] | None = None,
                         allow_extra_params: bool = False) -> None:
        """Copy values into arguments and auxiliary states by name."""
        for given, have, kind in ((arg_params, self.arg_dict, "argument"), (aux_params or {}, self.aux_dict, "auxiliary state")):
            for name, value in given.items():
                if name in have:
                    write(have[name], value)
                elif not allow_extra_params:
                    raise error(ValueError, f"copy_params_from: no {kind} is named {name!r}{suggest(name, have)}; "
                                            "pass allow_extra_params=True to ignore it")

    def set_monitor_callback(self, callback: Callable[[str, Any], None], monitor_all: bool = False) -> None:
        """Call ``callback(name, array)`` with every output of every node, and with `monitor_all` also with the inputs."""
        self._monitor, self._monitor_all = callback, monitor_all

    def _report(self, record: list[Any]) -> None:
        assert self._monitor is not None
        for node, values in record:
            for i, v in enumerate(values[:node.params._sig.visible]):
                if v is not None:
                    self._monitor(f"{node.name}_{node.params._sig.outputs[i]}", transfer.wrap(v, self._ctx))

    def __repr__(self) -> str:
        return f"<Executor of {self._symbol!r} on {self._ctx}>"
