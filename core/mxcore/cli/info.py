"""``mxcore info``: what is installed, what works, and why something does not."""

from __future__ import annotations

import argparse
import os
import platform
import warnings
from collections.abc import Iterable, Iterator
from importlib import metadata

from .. import __version__
from .._core import tables
from .._core.errors import caught, in_a_line
from .._core.manager import manager
from .._workers import processors
from ..base import MXNetError, MXNetWarning
from . import kernels
from .brought import failures, problems, reports

#: What is shown of the rest of the environment: distributions, by what they serve.
_DISTRIBUTIONS = (
    "numpy",
    "pluggy",
    "numba",
    "opencv-python-headless",
    "opencv-python",
    "fsspec",
    "ml_dtypes",
    "matplotlib",
    "mxcore-cuda",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "ray",
)
_VARIABLES = ("MXNET_", "MXCORE_", "OMP_NUM_", "OPENBLAS_NUM_", "MKL_NUM_", "NUMBA_NUM_")
_SECRET = ("TOKEN", "SECRET", "PASSWORD")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the argument."""
    parser.add_argument(
        "--kernels", metavar="OP", help="which kernel of an operator runs for which dtypes on each device, and why"
    )


def _versions() -> Iterator[tuple[str, str]]:
    yield "mxcore", __version__
    yield "python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})"
    for name in _DISTRIBUTIONS:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def _devices() -> Iterator[tuple[str, str]]:
    names = tables.devices.names()
    for name in [*names, *(n for n in ("cpu", "gpu") if n not in names)]:
        try:
            device = tables.devices.get(name)
            count = device.count()
            number = f"none: {device.absence()}" if count == 0 else f"{count if count < 1 << 20 else 'any number'}"
            owner = tables.devices.owners[name]
        except BaseException as e:  # a broken driver may raise anything; it is what this command is for
            yield name, f"{'missing' if isinstance(e, MXNetError) else 'broken'}: {in_a_line(caught(e))}"
        else:
            yield name, f"{number} (type id {device.type_id}, plugin {owner})"


def _threads() -> Iterator[tuple[str, str]]:
    yield "cores", f"{processors()} usable"
    for name, value in sorted(os.environ.items()):
        if name.startswith(_VARIABLES) and not any(word in name for word in _SECRET):
            yield name, value


def _plugins() -> Iterator[tuple[str, str]]:
    manager.load()
    for name, (dist, version) in sorted(manager.origin.items()):
        bad = problems(name)
        yield name, f"{dist} {version}{f', {len(bad)} broken (`mxcore plugins` tells)' if bad else ''}"
    yield from failures()


def table(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of a titled two-column table."""
    rows = list(rows)
    width = max((len(k) for k, _ in rows), default=0)
    return [title, *(f"  {k:{width}}  {v}" for k, v in rows)]


def main(args: argparse.Namespace) -> int:
    """Print the report."""
    with warnings.catch_warnings():  # what is put aside stands in the report, with its reason
        warnings.simplefilter("ignore", MXNetWarning)
        manager.load()
        if args.kernels is not None:
            print("\n".join(kernels.describe(args.kernels)))
            return 0
    lines = table("versions", _versions())
    lines += table("devices", _devices())
    lines += table("threads and settings", _threads())
    lines += table("plugins", _plugins())
    if told := reports():
        lines += ["reports", *(f"  {line}" for line in told)]
    print("\n".join(lines))
    return 0
