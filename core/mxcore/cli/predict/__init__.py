"""``mxcore predict``: a saved model on images, arrays or records.

`options` reads the command line, `inputs` the data, `answers` says what the network found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...urls import ending
from ..model import Model
from . import answers, inputs
from .options import add_arguments, files

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "main"]


def main(args: argparse.Namespace) -> int:
    """Run the model on every input and print what it says."""
    symbol_file, params_file = files(args)
    name, shape = args.shape or (None, None)
    model = Model(symbol_file, params_file, name)
    if model.extra:
        print(
            f"note: {params_file} holds {len(model.extra)} array(s) that the graph does not use: "
            f"{', '.join(model.extra[:5])}"
        )
    prepare = inputs.Prepare(model, shape, args.mean, args.std, args.scale)
    labels = answers.read_labels(args.labels)
    runner = answers.Runner(model, args.ctx)
    for path in args.input:
        if ending(path) == ".rec":
            answers.records(runner, inputs.records(path, prepare, args.batch_size), labels)
        else:
            for what, array in inputs.samples(path, prepare):
                answers.one(what, runner(array), labels, args.top)
    return 0
