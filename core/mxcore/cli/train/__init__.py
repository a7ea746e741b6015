"""``mxcore train``: train an image classifier from record files; LeNet on handwritten digits unless told otherwise.

`options` reads the command line, `data` opens the record files, `networks` makes the network, `by_gluon` and
`by_module` make it learn, `loop` trains and tests, `checkpoint` writes and reads what a run leaves behind, `curve`
draws it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

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
    if not run.first:
        return 0
    picture = curve.draw(run.history, args.output / f"{args.network}-curve.png")
    print(_summary(run, seconds))
    print(f"files: {checkpoint.path(run, '.params')} (parameters), .states (trainer), {picture} (learning curve)")
    return 0


def _summary(run: Run, seconds: float) -> str:
    if not run.history:
        return "nothing was trained"
    last = run.history[-1]
    which = "test" if run.data.test is not None else "train"
    return f"{which} accuracy {100 * last[which + '_accuracy']:.2f} % after epoch {last['epoch']}, {seconds:.1f} s"
