"""A graph as SVG, in the colours of ``mx.viz.plot_network``."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from .layout import layered

__all__ = ["picture"]

#: Sizes in pixels: of a node, and from node to node.
WIDTH, HEIGHT, STEP_X, STEP_Y, BORDER = 150, 44, 178, 96, 24
LETTERS = 21


def picture(nodes: Sequence[tuple[str, str, dict[str, str]]], edges: Sequence[tuple[str, str, str]], title: str) -> str:
    """The picture as text.

    Parameters
    ----------
    nodes : list of (str, str, dict)
        Name, label, and graphviz's attributes.
    edges : list of (str, str, str)
        User, source and label.
    title : str

    Returns
    -------
    str
    """
    shown = {n for n, _, _ in nodes}
    kept = [e for e in edges if e[0] in shown and e[1] in shown]
    layers = layered([n for n, _, _ in nodes], [e[:2] for e in kept])
    wide = max(map(len, layers), default=1)
    width, height = wide * STEP_X + 2 * BORDER, len(layers) * STEP_Y + 2 * BORDER
    places = {
        n: (BORDER + STEP_X * (i + 0.5 + (wide - len(layer)) / 2), height - BORDER - STEP_Y * (d + 0.5))
        for d, layer in enumerate(layers)
        for i, n in enumerate(layer)
    }
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12" text-anchor="middle">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8" fill="none" stroke="#444"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for user, source, label in kept:
        (x1, y1), (x2, y2) = places[source], places[user]
        y1, y2 = y1 - HEIGHT / 2, y2 + HEIGHT / 2
        middle = (y1 + y2) / 2
        out.append(
            f'<path d="M{x1:g},{y1:g} C{x1:g},{middle:g} {x2:g},{middle:g} {x2:g},{y2:g}" '
            'fill="none" stroke="#444" marker-end="url(#a)"/>'
        )
        if label:
            out.append(
                f'<text x="{(x1 + x2) / 2 + 4:g}" y="{middle + 4:g}" text-anchor="start" '
                f'fill="#444">{escape(label)}</text>'
            )
    for name, label, attrs in nodes:
        x, y = places[name]
        fill = quoteattr(attrs["fillcolor"])
        out.append(f"<g><title>{escape(name)}</title>")
        if attrs["shape"] == "oval":
            out.append(
                f'<ellipse cx="{x:g}" cy="{y:g}" rx="{WIDTH / 2:g}" ry="{HEIGHT / 2:g}" fill={fill} stroke="#222"/>'
            )
        else:
            out.append(
                f'<rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" '
                f'width="{WIDTH}" height="{HEIGHT}" fill={fill} stroke="#222"/>'
            )
        lines = label.split("\n")
        for i, line in enumerate(lines):
            short = line if len(line) <= LETTERS else line[: LETTERS - 1] + "…"
            out.append(f'<text x="{x:g}" y="{y + 4 + 15 * (i - (len(lines) - 1) / 2):g}">{escape(short)}</text>')
        out.append("</g>")
    return "\n".join([*out, "</svg>", ""])
