"""Saved models: a graph and its parameters, matched and bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import symbol as sym
from .._core.errors import suggest
from .._core.graph import topo
from ..base import MXNetError, error
from ..drafts import read_pair
from ..gluon.parameter.pairing import likely_pairs
from ..gluon.parameter.parameter_dict import brief
from ..ndarray.files import load_named, without_kinds

if TYPE_CHECKING:
    from ..context import Context
    from ..executor import Executor
    from ..ndarray import NDArray

__all__ = ["Model", "load_params"]


def load_params(path: str) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Arrays of a parameter file by name: (arguments, auxiliary states); without prefixes all are arguments.

    Raises
    ------
    MXNetError
        (also ValueError) if the file holds arrays without names.
    """
    loaded = load_named(path, "the parameters of a model have names")
    arg: dict[str, NDArray] = {}
    aux: dict[str, NDArray] = {}
    for name, (bare, array) in zip(loaded, without_kinds(loaded, path).items()):
        (aux if name.startswith("aux:") else arg)[bare] = array
    return arg, aux


class Model:
    """A graph with the parameters of a file.

    Parameters
    ----------
    symbol_file, params_file : str
        Paths or URLs.
    data : str, optional
        Name of the input; found out unless told.

    Attributes
    ----------
    symbol : Symbol
    data : str
        Name of the input.
    labels : list of str
        Inputs that only training needs.
    extra : list of str
        Arrays of the file that the graph does not use.

    Raises
    ------
    MXNetError
        (also ValueError) if the file lacks parameters, or some have other shapes than the graph says.
    """

    def __init__(self, symbol_file: str, params_file: str, data: str | None = None) -> None:
        self.symbol, (arg, aux) = read_pair(
            symbol_file, params_file, lambda graph: (sym.load(graph), load_params(params_file))
        )
        self.files = symbol_file, params_file
        held = {**arg, **aux}
        names, states = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        self.params = {n: held[n] for n in (*names, *states) if n in held}
        self.extra = [n for n in held if n not in self.params]
        self.data = data
        if data is not None and data not in names:
            raise error(ValueError, f"{symbol_file} has no input named {data!r}{suggest(data, names)}")
        self._match([n for n in names if n not in held], [n for n in states if n not in held])

    def _match(self, open_: list[str], states: list[str]) -> None:
        """Say which of the arguments that the file lacks are inputs; the others are missing."""
        self.labels = [n for n in open_ if n.endswith("label")]
        inputs = [n for n in open_ if n not in self.labels]
        if self.data is None and inputs:
            # Nobody calls a parameter 'data'; otherwise an input comes before the parameters that it meets.
            self.data = "data" if "data" in inputs else inputs[0]
        missing = [n for n in inputs if n != self.data] + states
        symbol_file, params_file = self.files
        if missing:
            strangers = (
                f" It holds {len(self.extra)} that the graph does not use: {brief(self.extra, 10)}."
                if self.extra
                else ""
            )
            raise error(
                ValueError,
                f"{params_file} lacks {len(missing)} parameter(s) of {symbol_file}: {brief(missing, 10)}.{strangers}"
                + likely_pairs(missing, self.extra),
            )
        if self.data is None:
            raise error(ValueError, f"{symbol_file} has no input: {params_file} holds all its arguments")

    def channels(self) -> int | None:
        """How many channels the first layer with parameters takes; None if that is no convolution or normalisation."""
        reached: set[str | None] = {self.data}
        for node in topo(self.symbol._heads):
            if node.op is None or not any(source.name in reached for source, _ in node.inputs[:1]):
                continue
            labels = dict(zip(node.params._sig.inputs, (self.params.get(source.name) for source, _ in node.inputs)))
            weight, gamma = labels.get("weight"), labels.get("gamma")
            if weight is not None:
                layout = str(getattr(node.params, "layout", None) or "NC")
                fits = node.op.name == "Convolution" and layout[1] == "C" and len(weight.shape) > 1
                return weight.shape[1] * node.params.num_group if fits else None
            if gamma is not None:
                return gamma.shape[0] if getattr(node.params, "axis", 1) == 1 and gamma.shape else None
            reached.add(node.name)
        return None

    def bind(self, ctx: Context, shape: tuple[int, ...]) -> Executor:
        """Bind the graph for inputs of one shape.

        Parameters
        ----------
        ctx : Context
        shape : tuple of int

        Returns
        -------
        Executor

        Raises
        ------
        MXNetError
            (also ValueError) if the network cannot take such an input.
        """
        types = {n: a.dtype for n, a in self.params.items()}
        shapes = {n: tuple(a.shape) for n, a in self.params.items()}
        ctx.device  # noqa: B018 - a missing device is an error of its own
        try:
            bound: Executor = self.symbol.simple_bind(
                ctx, grad_req="null", type_dict=types, **{**shapes, str(self.data): shape}
            )
        except MXNetError as e:
            raise error(
                ValueError,
                f"{self.files[0]} cannot take input '{self.data}' of shape {tuple(shape)}; give another --shape: {e}",
            ) from e
        states = self.symbol.list_auxiliary_states()
        bound.copy_params_from(
            {n: a for n, a in self.params.items() if n not in states},
            {n: a for n, a in self.params.items() if n in states},
        )
        return bound
