"""The command line of ``mxcore predict``."""

from __future__ import annotations

import argparse

from ...urls import appended
from ..arguments import finite_number, named_shape, numbers
from ..train.options import number, only_context

__all__ = ["add_arguments", "files"]


def files(args: argparse.Namespace) -> tuple[str, str]:
    """The graph file and the parameter file that the first two words mean."""
    if args.params.isdecimal():
        return appended(args.model, "-symbol.json"), appended(args.model, f"-{int(args.params):04d}.params")
    return args.model, args.params


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = (
        "Run a saved model: a checkpoint `PREFIX EPOCH`, which stands for PREFIX-symbol.json and PREFIX-0003.params, "
        "or the two files. Images are scaled until they cover --shape, cropped at the centre and handed over as "
        "(red, green, blue) from 0 to 255, after (x - mean) / std * scale, as ImageRecordIter does."
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="PREFIX of a checkpoint, or a graph file")
    add("params", metavar="PARAMS", help="EPOCH of the checkpoint, or a parameter file")
    add("--input", nargs="+", required=True, metavar="FILE", help="images, arrays (.npy) or record files (.rec)")
    add(
        "--shape",
        type=named_shape,
        metavar="C,H,W",
        help="shape of one sample; with a name (data=3,224,224) also which input it is (images: their own size)",
    )
    add("--labels", metavar="FILE", help="text file with the name of a class in each line, such as synset.txt")
    add("--top", type=number(int, 1), default=5, metavar="N", help="how many classes to show (5)")
    add("--mean", type=numbers, default=(0.0,), metavar="R,G,B", help="subtract from the channels (0)")
    add("--std", type=numbers, default=(1.0,), metavar="R,G,B", help="divide the channels by this (1)")
    add("--scale", type=finite_number, default=1.0, metavar="X", help="then multiply by this (1)")
    add("--batch-size", type=number(int, 1), default=32, metavar="N", help="records per step (32)")
    one = only_context("one context is enough to predict")
    add("--ctx", type=one, default="cpu", metavar="CONTEXT", help="where to compute: cpu, gpu(0) … (cpu)")
