"""``mxcore plot``: the graph of a model as a picture.

`layout` gives each node its place, `svg` writes the picture where the program ``dot`` of graphviz is not installed.
"""

from __future__ import annotations

import shutil
from pathlib import PurePath
from typing import TYPE_CHECKING

from ... import symbol as sym
from ..._io_files import write_atomic
from ...base import error
from ...urls import ending, with_ending
from ...visualization import drawn_edges, drawn_nodes, plot_network, told_apart
from ..arguments import add_shapes
from ..summary import named_shapes
from .svg import picture

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "main"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="graph file, path or URL, such as resnet-symbol.json")
    add(
        "-o",
        "--output",
        default="plot.svg",
        metavar="FILE",
        help="picture to write; its ending says how: .svg, "
        ".dot (graphviz's text), with the program dot also .pdf, .png … (plot.svg)",
    )
    add_shapes(parser, ", to show shapes at the arrows; may be given several times")
    add("--title", metavar="TEXT", help="name of the picture (name of the file)")
    add("--weights", action="store_true", help="show arrows from weights too")


def main(args: argparse.Namespace) -> int:
    """Write the picture."""
    symbol = sym.load(args.model)
    shapes = named_shapes(symbol, dict(args.shape)) or None
    form = ending(args.output)[1:].lower()
    title = args.title or PurePath(with_ending(args.output, "").partition("::")[0]).name
    if title != title.encode(errors="replace").decode():
        raise error(ValueError, f"{title!a} cannot be the title of a picture: it is no text; give another --title")
    keys = told_apart(symbol)
    nodes, edges = drawn_nodes(symbol, keys=keys), drawn_edges(symbol, shapes, hide_weights=not args.weights, keys=keys)
    known = {n for n, _, _ in nodes}
    weights = dict.fromkeys(source for _, source, _ in edges if source not in known)
    # As graphviz draws what only arrows name.
    nodes = [*((w, w, {"shape": "oval", "fillcolor": "white"}) for w in weights), *nodes]
    if form in ("dot", "gv"):
        data = plot_network(symbol, title, shape=shapes, hide_weights=not args.weights).source.encode()
    elif shutil.which("dot"):
        from graphviz import FORMATS

        if form not in FORMATS:
            raise error(
                ValueError, f"--output {args.output}: there is no format {form!r}; write .svg, .pdf, .png or .dot"
            )
        data = plot_network(symbol, title, save_format=form, shape=shapes, hide_weights=not args.weights).pipe()
    elif form == "svg":
        data = picture(nodes, edges, title).encode()
    else:
        raise error(
            ValueError,
            f"--output {args.output}: {'.' + form if form else 'a file without ending'} needs the program dot of "
            "graphviz, which is not installed; .svg and .dot do without it",
        )
    write_atomic(args.output, data)
    print(f"{len(nodes)} nodes and {len(edges)} arrows in {args.output}")
    return 0
