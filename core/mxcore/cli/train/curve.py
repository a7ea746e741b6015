"""The learning curve as a picture."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..._io_files import write_atomic

__all__ = ["draw"]

#: What is drawn lies below it, and is zero or above its inverse: axes over more take for ever, or overflow.
_MOST = 1e30


def _drawn(values: Iterable[float]) -> list[float]:
    """The values, NaN in the place of those that no axis can hold."""
    return [float(v) if not v or 1 / _MOST < abs(v) < _MOST else math.nan for v in values]


def draw(history: Sequence[dict[str, Any]], path: str) -> str:
    """Draw loss and accuracies over the epochs.

    Parameters
    ----------
    history : list of dict
        As `Run.history`. Losses that are not finite are left out; others than positive ones make the axis linear.
    path : str
        The PNG file to write, a path or URL.

    Returns
    -------
    str
        The same path.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    epochs = [entry["epoch"] for entry in history]
    losses = _drawn(entry["loss"] for entry in history)
    left.plot(epochs, losses, marker=".", color="tab:red")
    positive = bool(losses) and not any(v <= 0 for v in losses) and not all(map(math.isnan, losses))
    left.set(xlabel="epoch", ylabel="training loss", yscale="log" if positive else "linear")
    for which, colour in (("train", "tab:gray"), ("test", "tab:blue")):
        told = [entry for entry in history if which + "_accuracy" in entry]
        values = _drawn(100 * entry[which + "_accuracy"] for entry in told)
        if values:
            right.plot(
                [entry["epoch"] for entry in told],
                values,
                marker=".",
                color=colour,
                label=f"{which}: {values[-1]:.2f} %",
            )
    right.set(xlabel="epoch", ylabel="accuracy, %")
    if right.lines:
        right.legend(loc="lower right")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.xaxis.get_major_locator().set_params(integer=True)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    write_atomic(path, out.getvalue())
    return path
