"""The command line of ``mxcore train``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any

from ...context import Context

__all__ = ["FURTHER", "RATES", "add_arguments", "number", "only_context"]

#: Learning rates that suit the optimizers whose own default does not.
RATES = {"sgd": 0.03, "nag": 0.03}
#: What an optimizer gets beside learning rate and weight decay.
FURTHER = {"sgd": {"momentum": 0.9}, "nag": {"momentum": 0.9}}


def contexts(text: str) -> list[Context]:
    """``cpu``, ``gpu(1)`` or ``cpu(0),cpu(1)`` as a list of contexts."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([a-z_]\w*)\s*(?:[(:]\s*(\d+)\s*\)?)?\s*", part)
        if match is None:
            raise argparse.ArgumentTypeError(f"{part.strip()!r} is no context; write cpu, cpu(1) or gpu(0),gpu(1)")
        found.append(Context(match[1], int(match[2] or 0)))
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text!r} names a context twice")
    return found


def only_context(why: str) -> Callable[[str], Context]:
    """A parser of a single context; `why` begins the error where there are more."""

    def parse(text: str) -> Context:
        found = contexts(text)
        if len(found) > 1:
            raise argparse.ArgumentTypeError(f"{why}, {text!r} names {len(found)}")
        return found[0]

    return parse


def shape(text: str) -> tuple[int, ...]:
    """``1,28,28`` as a tuple."""
    try:
        sizes = tuple(int(n) for n in re.split(r"[,x ]+", text.strip("() ")))
    except ValueError:
        sizes = ()
    if len(sizes) != 3 or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; write CHANNELS,HEIGHT,WIDTH, such as 3,32,32")
    return sizes


def number(kind: Callable[[str], Any], low: float, above: bool = False) -> Callable[[str], Any]:
    """A parser of numbers from `low` on, or greater than it."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or value != value or value < low or (above and value == low):
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {what} {'above' if above else 'from'} {low}")
        return value

    return parse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = (
        "Train an image classifier. With no argument: LeNet on the bundled handwritten digits (1,438 to "
        "train, 359 held out to test), which takes seconds."
    )
    positive = number(int, 1)
    add = parser.add_argument
    add(
        "--api",
        choices=("gluon", "module"),
        default="gluon",
        help="train with Gluon, or symbolically with Module (gluon)",
    )
    add("--network", default="lenet", metavar="NAME", help="lenet, mlp or a model of gluon.model_zoo.vision (lenet)")
    add(
        "--rec", metavar="FILE", help="record file to train with, path or URL, as `mxcore im2rec` makes it (the digits)"
    )
    add("--val-rec", metavar="FILE", help="record file to test with; without it a --rec is trained, not tested")
    add("--data-shape", type=shape, metavar="C,H,W", help="shape of an image (1,28,28; for other networks 3,224,224)")
    add("--num-classes", type=positive, default=10, metavar="N", help="how many classes there are (10)")
    add(
        "--augment",
        action="store_true",
        help="crop and mirror the images of --rec at random; digits are always shifted a little",
    )
    add("--optimizer", default="sgd", metavar="NAME", help="name of an optimizer (sgd, with momentum 0.9)")
    add(
        "--lr",
        type=number(float, 0, above=True),
        metavar="RATE",
        help="first learning rate; it falls along a cosine (sgd, nag: 0.03; else its own)",
    )
    add("--wd", type=number(float, 0), default=1e-4, metavar="RATE", help="weight decay (0.0001)")
    add("--epochs", type=positive, default=10, metavar="N", help="how many times to go through the images (10)")
    add("--batch-size", type=positive, default=64, metavar="N", help="images per step, over all contexts (64)")
    add(
        "--ctx",
        type=contexts,
        default="cpu",
        metavar="CONTEXTS",
        help="where to compute: cpu, gpu(0), cpu(0),cpu(1) … (cpu)",
    )
    add(
        "--kvstore",
        default="local",
        metavar="TYPE",
        help="who adds up gradients and updates: local, device, nccl; dist_sync … under `mxcore launch` (local)",
    )
    add("--seed", type=number(int, 0), default=0, metavar="N", help="decides all chance (0)")
    add("--output", default="mxcore-train", metavar="DIR", help="folder or URL for what comes out (mxcore-train)")
    add(
        "--tensorboard",
        metavar="DIR",
        help="folder or URL for TensorBoard's event files: loss, accuracies, speed, learning rate",
    )
    add("--resume", action="store_true", help="go on from the last checkpoint in --output")
