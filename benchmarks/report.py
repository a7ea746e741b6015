"""The table of peers as Markdown and as a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from mxcore.testing.table import seconds

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


@dataclass
class Line:
    """What was measured of one workload.

    Parameters
    ----------
    name : str
    wanted : float
        Of the ratio to the faster peer, at most.
    values : dict
        Framework to seconds (or bytes).
    unit : callable
        A value as text.
    """

    name: str
    wanted: float
    values: dict[str, float] = field(default_factory=dict)
    unit: object = seconds

    def ratio(self, peer):
        """Ours by that of a peer; None if one of them is missing."""
        ours, theirs = self.values.get("mxcore"), self.values.get(peer)
        return ours / theirs if ours and theirs else None

    @property
    def worst(self):
        """Ours by the better of the peers; None without any."""
        ratios = [self.ratio(name) for name in self.values if name != "mxcore"]
        return max((r for r in ratios if r is not None), default=None)


def gigabytes(n):
    """An amount of memory."""
    return f"{n / 2**30:.2f} GiB"


def markdown(lines, peers):
    """Rows of the table.

    Parameters
    ----------
    lines : list of Line
    peers : dict
        Framework to how it is called.
    """
    head = ["work", "mxcore", *peers.values(), *(f"/ {title}" for title in peers.values()), "wanted", "met"]
    rows = [head, ["---", *["---:"] * (len(head) - 2), "---"]]
    for line in lines:
        values = [line.unit(line.values[f]) if f in line.values else "–" for f in ("mxcore", *peers)]
        ratios = [f"{r:.2f}" if (r := line.ratio(p)) is not None else "–" for p in peers]
        met = "" if line.worst is None else "yes" if line.worst <= line.wanted else "no"
        rows.append([line.name, *values, *ratios, f"{line.wanted:g}", met])
    return ["| " + " | ".join(row) + " |" for row in rows]


#: Sizes of the picture in pixels, colours of bars by the order of the peers, and the ratios that are marked.
LEFT, WIDTH, STEP, BAR = 280, 460, 30, 10
COLOURS = "#3465a4", "#c4622d"
MARKS = 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4


def picture(lines, peers):
    """Ratios as bars on a logarithmic axis, as the text of an SVG; to the left of the line at 1 we are faster."""
    lines = [x for x in lines if x.worst is not None]

    def x(ratio):
        low, high = math.log(MARKS[0]), math.log(MARKS[-1])
        return LEFT + WIDTH * (min(max(math.log(ratio), low), high) - low) / (high - low)

    top = 40
    height = top + STEP * len(lines) + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 60} {height}" font-family="sans-serif" '
        'font-size="12">',
        "<title>Time of mxcore by that of its peers</title>",
        f'<rect width="{LEFT + WIDTH + 60}" height="{height}" fill="white"/>',
    ]
    for i, title in enumerate(peers.values()):
        out.append(f'<rect x="{LEFT + 170 * i}" y="10" width="12" height="12" fill="{COLOURS[i]}"/>')
        out.append(f'<text x="{LEFT + 170 * i + 18}" y="20">mxcore / {escape(title)}</text>')
    for mark in MARKS:
        text = f"{mark:g}" if mark >= 1 else f"1/{1 / mark:g}"
        stroke = "#222" if mark == 1 else "#ddd"
        out.append(f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{top}" y2="{height - 24}" stroke="{stroke}"/>')
        out.append(f'<text x="{x(mark):.1f}" y="{height - 8}" text-anchor="middle" fill="#555">{text}</text>')
    for i, line in enumerate(lines):
        y = top + STEP * i + 5
        out.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(line.name)}</text>')
        for j, peer in enumerate(peers):
            if (ratio := line.ratio(peer)) is not None:
                start, end = sorted((x(1), x(ratio)))
                out.append(
                    f'<rect x="{start:.1f}" y="{y + BAR * j}" width="{max(end - start, 1):.1f}" height="{BAR - 1}" '
                    f'fill="{COLOURS[j]}"><title>{ratio:.2f}</title></rect>'
                )
        mark = x(line.wanted)
        out.append(f'<line x1="{mark:.1f}" x2="{mark:.1f}" y1="{y - 2}" y2="{y + 21}" stroke="#090" stroke-width="2"/>')
    return "\n".join([*out, "</svg>", ""])


def into(text, measured):
    """A page with what stands between the two marks, or at its end if there are none, replaced."""
    before, begin, rest = text.partition(BEGIN)
    after = rest.partition(END)[2] if begin else ""
    return f"{before.rstrip()}\n\n{BEGIN}\n\n{measured}\n\n{END}\n{after}"
