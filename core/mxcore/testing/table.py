"""The table of benchmarks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Row", "lines", "seconds"]


@dataclass
class Row:
    """A line of the table.

    Parameters
    ----------
    name : str
        What was measured.
    backend : str
        The context it ran on.
    kernel : str
        What ran there, if that has a name.
    seconds : float, optional
        How long ours took, at best.
    median : float, optional
        How long it took in most rounds.
    against : str
        What it was compared with, and how long that took.
    ratio : float, optional
        Ours by the other.
    at_most : float, optional
        The figure for the ratio, or for the `value`.
    value : str
        What is shown instead of a ratio.
    met : bool, optional
        Whether the figure is met; follows from `ratio` and `at_most` unless told.
    """

    name: str
    backend: str = "cpu(0)"
    kernel: str = ""
    seconds: float | None = None
    against: str = ""
    ratio: float | None = None
    at_most: float | None = None
    value: str = ""
    wanted: str = ""
    met: bool | None = None
    median: float | None = None

    def cells(self) -> tuple[str, ...]:
        """The texts of the line."""
        met, wanted, value = self.met, self.wanted, self.value
        if self.ratio is not None:
            value = f"{self.ratio:.2f} x"
            if self.seconds is not None and value != "1.00 x":
                value += ", slower" if self.ratio > 1 else ", faster"
        if self.at_most is not None:
            wanted = f"at most {self.at_most:g} x"
            met = self.ratio is not None and self.ratio <= self.at_most
        took = " .. ".join(seconds(s) for s in (self.seconds, self.median) if s is not None)
        return (
            self.name,
            self.backend,
            self.kernel,
            took,
            self.against,
            value,
            wanted,
            {True: "yes", False: "NO", None: ""}[met],
        )


HEAD = ("benchmark", "backend", "kernel", "ours", "against", "result", "wanted", "met")


def seconds(s: float) -> str:
    """A duration in a unit that suits it.

    Parameters
    ----------
    s : float
    """
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if s * factor >= 1:
            return f"{s * factor:.3g} {unit}"
    return f"{s * 1e9:.3g} ns"


def lines(rows: Iterable[Row]) -> list[str]:
    """The table as lines of text, the figures first; columns in which nothing stands are left out.

    Parameters
    ----------
    rows : iterable of Row
    """
    cells = [r.cells() for r in sorted(rows, key=lambda r: not (r.wanted or r.at_most))]
    columns = [c for c in zip(HEAD, *cells) if any(c[1:])]
    widths = [max(map(len, column)) for column in columns]
    head, *cells = zip(*columns)
    text = [head, tuple("-" * w for w in widths), *cells]
    return ["  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in text]
