"""The model that is measured: found by name or in files, filled, and bound."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ... import initializer
from ... import ndarray as nd
from ... import optimizer as optimizers
from ... import symbol as sym
from ..._core.errors import suggest
from ..._core.graph import topo
from ...base import MXNetError, error
from ...gluon.model_zoo import vision
from ...symbol.inference import noted
from ...urls import ending
from ...visualization import inputs_of
from ..model import Model
from ..summary import named_shapes
from ..train.options import FURTHER

if TYPE_CHECKING:
    from ...context import Context
    from ...executor import Executor

__all__ = ["Subject", "find"]

#: Sides of the pictures that networks of the zoo take.
_SIDE = {"inception_v3": 299}
_ENDING = "-symbol.json"


class Subject:
    """A graph with arrays for all its inputs, on a context.

    Parameters
    ----------
    name : str
    symbol : Symbol
    inputs : dict of str to tuple
        Shapes of what is no parameter.
    params : dict of str to NDArray
        Those that a file has; others are random.
    ctx : Context
    optimizer : str or False
        Which optimizer updates; False: the model predicts.

    Raises
    ------
    MXNetError
        (also ValueError) if the graph cannot take inputs of these shapes, or there is no such optimizer.
    """

    def __init__(
        self,
        name: str,
        symbol: Any,
        inputs: dict[str, tuple[int, ...]],
        params: dict[str, Any],
        ctx: Context,
        optimizer: str | Literal[False],
    ) -> None:
        self.name, self.symbol, self.inputs, self.ctx, self.optimizer = name, symbol, inputs, ctx, optimizer
        self.train = train = bool(optimizer)
        self.random = not params
        self.batch = next(iter(inputs.values()))[0]
        kept = {*inputs, *(n for n in symbol.list_arguments() if n.endswith("label"))}
        shapes = {**{n: tuple(a.shape) for n, a in params.items()}, **inputs}
        try:
            made = symbol.simple_bind(
                ctx,
                grad_req={n: "write" if train and n not in kept else "null" for n in symbol.list_arguments()},
                type_dict={n: a.dtype for n, a in params.items()},
                **shapes,
            )
        except MXNetError as e:
            told = ", ".join(f"{n}={','.join(map(str, s))}" for n, s in inputs.items())
            raise error(ValueError, f"{name} cannot take {told}; --shape NAME=N,C,H,W gives another shape: {e}") from e
        self.arrays, self.grads, self.states = made.arg_dict, made.grad_dict, made.aux_dict
        self._reqs = {n: "write" if g is not None else "null" for n, g in self.grads.items()}
        for n, a in {**self.arrays, **self.states}.items():
            a[:] = params[n].as_in_context(ctx) if n in params else _numbers(n, a, n in kept)
        #: One call for all weights, in training.
        self.update = self._updater(optimizer) if optimizer else None
        nd.waitall()

    def _updater(self, name: str) -> Callable[[], None]:
        # The rate is small: weights stay what they are, however often a run is repeated.
        rule = optimizers.create(name, learning_rate=1e-12, **FURTHER.get(name, {}))
        moved = [n for n, g in self.grads.items() if g is not None]
        numbers, weights = [*range(len(moved))], [self.arrays[n] for n in moved]
        grads, update = [self.grads[n] for n in moved], optimizers.get_updater(rule)
        return lambda: update(numbers, grads, weights)

    def bind(self) -> Executor:
        """The graph bound to the arrays, with the passes and kernels that count now."""
        grads = {n: g for n, g in self.grads.items() if g is not None}
        bound: Executor = self.symbol.bind(
            self.ctx, self.arrays, args_grad=grads or None, grad_req=self._reqs, aux_states=self.states
        )
        return bound

    def runner(self, bound: Executor) -> Callable[[], None]:
        """A function that runs a bound graph, and updates, once, and waits for it."""
        steps = self.steps(bound)

        def run() -> None:
            for step in steps:
                step()

        return run

    def steps(self, bound: Executor) -> list[Callable[[], None]]:
        """The run of a bound graph and, in training, the update, each of which waits for its results."""
        device, index, train = self.ctx.device, self.ctx.device_id, self.train
        heads = [nd.ones(y.shape, ctx=self.ctx, dtype=y.dtype) for y in bound.forward(is_train=train)] if train else []

        def waited(run: Callable[[], None]) -> Callable[[], None]:
            def call() -> None:
                run()
                nd.waitall()
                if device.async_:
                    device.synchronize(index)

            return call

        def compute() -> None:
            bound.forward(is_train=train)
            if train:
                bound.backward(heads)

        return [waited(run) for run in (compute, self.update) if run is not None]

    @property
    def bytes(self) -> int:
        """Of parameters, states and gradients."""
        arrays = [*self.arrays.values(), *self.states.values(), *(g for g in self.grads.values() if g is not None)]
        return sum(a.size * np.dtype(a.dtype).itemsize for a in arrays if a.stype == "default")


def _numbers(name: str, like: Any, given: bool) -> Any:
    """What stands in an array that no file fills."""
    if given:
        data = not name.endswith("label") and np.dtype(like.dtype).kind == "f"
        return nd.random.uniform(shape=like.shape, ctx=like.context).astype(like.dtype) if data else 0
    made = nd.zeros(like.shape, ctx=like.context)
    try:
        initializer.Xavier()(initializer.InitDesc(name), made)
    except MXNetError:  # a name that says nothing, or a weight of one dimension
        initializer.Uniform(0.05)._init_weight(name, made)
    return made.astype(like.dtype)


def find(
    model: str,
    params: str | None,
    shapes: dict[str | None, tuple[int, ...]],
    batch: int | None,
    ctx: Context,
    optimizer: str | Literal[False],
) -> Subject:
    """The model that a command line means.

    Parameters
    ----------
    model : str
        A graph file, the prefix of a checkpoint, or the name of a network of `gluon.model_zoo.vision`.
    params : str or None
        A parameter file.
    shapes : dict
        Name of the input (None: the first) to its shape.
    batch : int or None
        The first dimension of all inputs.
    ctx : Context
    optimizer : str or False
        Which optimizer updates; False: the model predicts.

    Raises
    ------
    MXNetError
        (also ValueError) if there is no such model, it needs a shape, or cannot take the one given.
    """
    zoo = {_plain(n): n for n in _networks()}.get(_plain(model))
    if zoo is not None and ending(model) != ".json":
        held: dict[str, Any] = {}
        symbol, default = getattr(vision, zoo)()(sym.Variable("data")), (1, 3, *2 * (_SIDE.get(zoo, 224),))
        name = model
    else:
        name, symbol, held = _read(model, params)
        default = None
    told = named_shapes(symbol, shapes)
    inputs = [n for n in inputs_of(symbol) if n not in held and not n.endswith("label")]
    for n in inputs:
        shape = told.get(n) or default or _noted(symbol, n)
        if shape is None:
            raise error(
                ValueError,
                f"{name} does not say what shape its input '{n}' has; give it: --shape {n}=1,3,224,224 for a picture",
            )
        told[n] = (batch, *shape[1:]) if batch is not None else shape
    if not told:
        raise error(ValueError, f"{name} has no input: there is nothing to run it on")
    if unknown := [n for n, s in told.items() if 0 in s]:
        raise error(ValueError, f"--shape {unknown[0]}={told[unknown[0]]}: all sizes have to be known, none may be 0")
    return Subject(name, symbol, told, held, ctx, optimizer)


def _networks() -> list[str]:
    """The functions that make networks of the zoo."""
    return [n for n in vision.__all__ if n.islower() and not n.startswith("get_")]


def _plain(name: str) -> str:
    """A name of a network without what `get_model` and the functions write in different ways."""
    return re.sub(r"[._]", "", name.lower())


def _noted(symbol: Any, name: str) -> tuple[int, ...] | None:
    """The shape that a graph notes on a variable; None unless all of it."""
    found = next((noted(n, "shape") for n in topo(symbol._heads) if n.op is None and n.name == name), None)
    return tuple(found) if found and min(found) > 0 else None


def _read(model: str, params: str | None) -> tuple[str, Any, dict[str, Any]]:
    """(name, graph, arrays) of files."""
    file = model
    if ending(model) != ".json":
        file = model + _ENDING
        if "://" not in file and not Path(file).exists():
            near = suggest(model, _networks())
            raise error(
                ValueError,
                f"there is no model {model!r}: neither a file {file} nor a network of gluon.model_zoo.vision{near}",
            )
    if params is None and file.endswith(_ENDING) and "://" not in file:
        params = max(glob.glob(glob.escape(file.removesuffix(_ENDING)) + "-*.params"), default=None)
    if params is None:
        return file, sym.load(file), {}
    found = Model(file, params)
    return file, found.symbol, found.params
