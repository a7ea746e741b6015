"""``mxcore train``: train an image classifier from record files; LeNet on handwritten digits unless told otherwise.

`options` reads the command line, `data` opens the record files, `networks` makes the network, `by_gluon` and
`by_module` make it learn, `workers` joins the processes of a distributed run, `loop` trains and tests, `checkpoint`
writes and reads what a run leaves behind, `curve` draws it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from ...urls import child
from . import checkpoint, curve, loop
from .options import add_arguments

if TYPE_CHECKING:
    import argparse

    from .loop import Run

__all__ = ["add_arguments", "main"]


def main(args: argparse.Namespace) -> int:
    """Train, and say in the last line how well and where the files are."""
    start = time.perf_counter()
    run = loop.Run(args)
    try:
        run.resume()
        run.train()
    finally:
        run.close()
    seconds = time.perf_counter() - start
    if not run.workers.first:
        return 0
    files = f"{checkpoint.path(run, '.params')} (parameters), .states (trainer)"
    try:
        picture = curve.draw(run.history, child(args.output, f"{args.network}-curve.png"))
        files += f", {picture} (learning curve)"
    except OSError as e:  # such as no folder for matplotlib's cache; the model is there without a picture of it
        print(f"no learning curve is drawn: {e}", file=sys.stderr)
    print(_summary(run, seconds))
    print(f"files: {files}")
    return 0


def _summary(run: Run, seconds: float) -> str:
    if not run.history:
        return "nothing was trained"
    last = run.history[-1]
    # A run that was complete when it was resumed may have had no test.
    which = next((w for w in ("test_accuracy", "train_accuracy") if w in last), None)
    said = f"loss {last['loss']:.4f}" if which is None else f"{which.replace('_', ' ')} {100 * last[which]:.2f} %"
    return f"{said} after epoch {last['epoch']}, {seconds:.1f} s"
