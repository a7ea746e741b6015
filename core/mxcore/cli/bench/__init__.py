"""``mxcore bench``: a model on this machine, operator by operator.

`subject` finds the model and binds it, `machine` measures what the machine can do, `timing` runs it, `inside` looks
where the time goes, `variants` leaves passes and kernels out, `show` prints.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from ..arguments import add_shapes
from ..brought import reports
from ..train.options import number, only_context
from . import inside, machine, show, subject, timing, variants

__all__ = ["add_arguments", "main"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = (
        "Measure a model on this machine: how long a run takes, which operators it is spent in and how close these "
        "come to what the machine can do, its memory, and what each graph pass and each plugin's kernels contribute."
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="graph file, PREFIX of a checkpoint, or a name such as resnet18_v1")
    add("--params", metavar="FILE", help="parameter file (the newest PREFIX-*.params beside the graph; else random)")
    add_shapes(parser, "; may be given several times (without a name: of the first)")
    add("--batch", type=number(int, 1), metavar="N", help="the first dimension of all inputs (what --shape says, or 1)")
    add("--train", action="store_true", help="forward in training mode, backward and update, instead of forward alone")
    add("--optimizer", default="sgd", metavar="NAME", help="which updates, with --train (sgd, with momentum 0.9)")
    one = only_context("one context is measured")
    add("--device", "--ctx", type=one, default="cpu", metavar="CONTEXT", help="where: cpu, gpu(0) … (cpu)")
    add("--repeat", type=number(int, 1), metavar="N", help="runs that are timed (as many as fit into two seconds)")
    add("--json", action="store_true", help="print all of it as JSON, each node included")


def main(args: argparse.Namespace) -> int:
    """Measure, and print."""
    os.environ["MXCORE_COMPILE"] = "wait"  # what is measured is compiled code
    ctx = args.device
    ctx.device  # noqa: B018 - a missing device is an error of its own
    model = subject.find(
        args.model, args.params, dict(args.shape), args.batch, ctx, args.train and args.optimizer.lower()
    )
    bound = model.bind()
    times = timing.run_times(model.runner(bound), args.repeat)
    found: dict[str, Any] = {
        "model": model.name,
        "device": str(ctx),
        "mode": f"training (forward, backward, update by {model.optimizer})" if args.train else "inference",
        "inputs": {name: list(shape) for name, shape in model.inputs.items()},
        "parameters": "random" if model.random else "of the file",
        "run": timing.summary(times, model.batch),
        "memory": timing.memory(model, bound),
        "reports": reports(),
        "machine": machine.roofline(ctx),
    }
    found["nodes"], found["watched"] = inside.rows(model, found["machine"], len(times))
    found["operators"] = inside.operators(found["nodes"])
    found["variants"] = variants.measure(model, bound, len(times), {row["by"] for row in found["nodes"]})
    print(json.dumps(found, indent=2) if args.json else "\n".join(show.lines(found)))
    return 0
