"""``mxcore summary``: the layers of a model, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .. import symbol as sym
from .._core.errors import suggest
from ..base import error
from ..visualization import inputs_of, layers
from .arguments import add_shapes
from .model import load_params

if TYPE_CHECKING:
    import argparse

    from ..symbol import Symbol
    from ..visualization import Layer

__all__ = ["add_arguments", "main", "named_shapes", "table"]

_COLUMNS = ("Layer (type)", "Output Shape", "Param #", "Previous Layer")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="graph file, path or URL, such as resnet-symbol.json")
    add_shapes(
        parser,
        "; may be given several times. Without a name: of the first input. Without shapes, what the file says of its "
        "parameters is shown",
    )
    parser.add_argument("--params", metavar="FILE", help="parameters of the model, whose shapes are then known")


def named_shapes(symbol: Symbol, shapes: Mapping[str | None, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Shapes from the command line by name of the input; one without a name is of the first.

    Raises
    ------
    MXNetError
        (also ValueError) if the graph has no such input.
    """
    inputs, names = inputs_of(symbol), symbol.list_inputs()
    found = {}
    for name, shape in shapes.items():
        if name is None:
            if not inputs:
                raise error(ValueError, "--shape needs a name: the graph has no input that looks like one")
            name = inputs[0]
        if name not in names:
            raise error(
                ValueError,
                f"--shape: the graph has no input named {name!r}{suggest(name, names)}; "
                f"its inputs are {', '.join(inputs)}",
            )
        found[name] = shape
    return found


def _text(shape: Sequence[int | None] | None) -> str:
    return "?" if not shape else "(" + ", ".join(str(d or "?") for d in shape) + ("," if len(shape) == 1 else "") + ")"


def table(found: Sequence[Layer]) -> list[str]:
    """Lines of the table, with totals below.

    Parameters
    ----------
    found : list of Layer
    """
    rows = []
    for layer in found:
        cells = f"{layer.name}({layer.kind})", ", ".join(map(_text, layer.shapes)), _count(layer)
        before = list(dict.fromkeys(layer.before)) or [""]
        rows += [(*(cells if i == 0 else ("",) * 3), name) for i, name in enumerate(before)]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows)]
    full = sum(widths) + 2 * (len(widths) - 1)

    def line(cells: Sequence[str]) -> str:
        return "  ".join(f"{c:>{w}}" if i == 2 else f"{c:{w}}" for i, (c, w) in enumerate(zip(cells, widths))).rstrip()

    params, open_ = sum(x.params or 0 for x in found), sum(x.params is None for x in found)
    states = sum(x.states or 0 for x in found)
    lines = ["-" * full, line(_COLUMNS), "=" * full, *map(line, rows), "=" * full, f"Total params: {params + states:,}"]
    lines += [f"  learnt: {params:,}", f"  auxiliary states: {states:,}"]
    if open_:
        lines.append(f"  not counted: {open_} layer(s) marked ?, whose shapes are unknown; --shape tells them")
    return [*lines, "-" * full]


def _count(layer: Layer) -> str:
    if layer.params is None or layer.states is None:
        return "?"
    return f"{layer.params + layer.states:,}"


def main(args: argparse.Namespace) -> int:
    """Print the table."""
    symbol, shapes = sym.load(args.model), {}
    if args.params is not None:
        arrays = {**(found := load_params(args.params))[0], **found[1]}
        shapes = {name: tuple(arrays[name].shape) for name in symbol.list_inputs() if name in arrays}
        if not shapes:
            raise error(
                ValueError,
                f"--params: {args.params} holds none of the parameters of {args.model}; it holds "
                f"{', '.join(list(arrays)[:6]) or 'nothing'} …",
            )
    print("\n".join(table(layers(symbol, {**shapes, **named_shapes(symbol, dict(args.shape))}))))
    return 0
