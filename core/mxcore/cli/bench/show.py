"""What was measured, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...testing.table import seconds

__all__ = ["lines"]

#: Operators and nodes that are shown, and what all others together are called.
OPERATORS, NODES = 15, 10
#: Letters of an operator's name.
WIDE = 48
_LEFT = ("operator", "node", "by", "shapes", "what", "how")


def _size(n: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}"
    return f"{n:.0f} bytes"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return [
        "  " + "  ".join(c.ljust(w) if h in _LEFT else c.rjust(w) for c, w, h in zip(row, widths, head)).rstrip()
        for row in cells
    ]


def _rates(row: dict[str, Any]) -> tuple[str, ...]:
    """Rates and the share of the machine's; nothing of what is not known."""
    took = row["seconds"] or 1e-12
    known = row["bytes"] > 0
    return (
        f"{row['flops'] / took / 1e9:.1f}" if row["flops"] else "",
        f"{row['bytes'] / took / 1e9:.1f}" if known else "",
        f"{row['reached']:.0%}" if known else "",
    )


def lines(found: dict[str, Any]) -> list[str]:
    """All lines.

    Parameters
    ----------
    found : dict
        What `mxcore bench` has measured.
    """
    inputs = ", ".join(f"{n} {'x'.join(map(str, s))}" for n, s in found["inputs"].items())
    run, memory, machine = found["run"], found["memory"], found["machine"]
    text = [
        f"{found['model']} on {found['device']}, {found['mode']}, {inputs}, parameters {found['parameters']}",
        f"  a run     {seconds(run['best'])} (best of {run['runs']}, median {seconds(run['median'])}), "
        f"{run['samples_per_second']:.4g} samples a second",
        f"  memory    {_size(memory['arrays'])} arrays, {_size(memory['temporary'])} planned for temporary results"
        + "".join(f", {_size(memory[n])} {what}" for n, what in _MEMORY if n in memory),
        f"  machine   {machine['flops'] / 1e9:.4g} GFLOP/s in products, {machine['bytes'] / 1e9:.4g} GB/s of memory",
        *(f"  {line}" for line in found["reports"]),
    ]
    total = sum(n["seconds"] for n in found["nodes"]) or 1e-12
    watched = found["watched"]
    text += ["", f"operators: {seconds(total)} of the {seconds(watched)} that a run takes while it is watched"]
    text += _table(
        ("operator", "calls", "ms", "share", *_HEAD, "by"),
        [
            (
                _short(r["op"]),
                str(r["calls"]),
                f"{r['seconds'] * 1e3:.3f}",
                f"{r['seconds'] / total:.0%}",
                *_rates(r),
                r["by"],
            )
            for r in found["operators"][:OPERATORS]
        ],
    )
    text += _rest(found["operators"][OPERATORS:], total)
    text += ["", "longest nodes"]
    text += _table(
        ("node", "operator", "ms", *_HEAD, "shapes"),
        [
            (n["node"], _short(n["op"]), f"{n['seconds'] * 1e3:.3f}", *_rates(n), _shapes(n["shapes"]))
            for n in found["nodes"][:NODES]
        ],
    )
    text += ["", "time of a run, by that of the model as it is"]
    text += _table(
        ("what", "ratio", "how"),
        [
            (v["what"], f"{v['ratio']:.2f}" if "ratio" in v else "fails", v.get("failed") or v["how"])
            for v in found["variants"]
        ],
    )
    return [*text, "", *_NOTES]


_HEAD = ("GFLOP/s", "GB/s", "of machine")
_MEMORY = (("device", "in use on the device"), ("process_peak", "at most in this process"))
_NOTES = (
    "of machine: the time that its products take at the rates above, or its bytes if these take longer, by the time",
    "that it took; what stays in caches may be above 100 %. GFLOP/s count products of matrices. --json has every node.",
)


def _short(name: str) -> str:
    """A name that leaves room for figures."""
    return name if len(name) <= WIDE else f"{name[: WIDE - 2]} …"


def _rest(rows: Sequence[dict[str, Any]], total: float) -> list[str]:
    if not rows:
        return []
    took = sum(r["seconds"] for r in rows)
    return [f"  and {len(rows)} more: {took * 1e3:.3f} ms, {took / total:.0%}"]


def _shapes(shapes: Sequence[Any]) -> str:
    return " ".join("?" if s is None else "x".join(map(str, s)) or "()" for s in shapes[:3])
