"""One framework's side: ``python -m benchmarks.workloads mxnet`` answers what `peers` asks."""

from __future__ import annotations

import importlib
import sys

from ..peer import serve
from .table import WORKLOADS


def main(name):
    """Serve the workloads in a framework."""
    framework = importlib.import_module(name)

    def prepare(workload, quick, folder):
        entry = WORKLOADS[workload]
        make = entry.torch if name == "torch" else entry.mx
        return make(framework, *entry.arguments(quick, folder))

    serve(prepare)


main(*sys.argv[1:])
