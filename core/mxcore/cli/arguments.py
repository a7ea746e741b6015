"""Values on command lines that several sub-commands take."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path

from .._io_files import local_path
from ..base import MXNetError

__all__ = ["add_shapes", "finite_number", "local_folder", "named_shape", "numbers"]


def local_folder(text: str) -> Path:
    """A folder on this machine; a URL is none."""
    try:
        return Path(local_path(text))
    except MXNetError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def _sizes(text: str, lowest: int) -> tuple[int, ...]:
    parts = re.split(r"\s*[,x]\s*|\s+", re.sub(r",\s*$", "", text.strip("()[] ")))  # a tuple of one ends with a comma
    if not all(map(str.isdecimal, parts)):
        return ()
    sizes = tuple(map(int, parts))
    return sizes if all(n >= lowest for n in sizes) else ()


def named_shape(text: str) -> tuple[str | None, tuple[int, ...]]:
    """``data=1,3,224,224``, or without a name, as (name or None, shape); 0 is an unknown dimension."""
    name, equals, sizes = text.rpartition("=")
    found = _sizes(sizes, 0)
    if not found or (equals and not name.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; write NAME=SIZE,SIZE…, such as data=1,3,224,224")
    return name.strip() or None, found


def add_shapes(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare ``--shape``, which may be given several times; `what` ends its help."""
    parser.add_argument(
        "--shape",
        metavar="NAME=N,C,H,W",
        type=named_shape,
        action="append",
        default=[],
        help=f"shape of an input, such as data=1,3,224,224{what}",
    )


def numbers(text: str) -> tuple[float, ...]:
    """``123.68,116.78,103.94`` or one number as a tuple; all of them finite."""
    try:
        found = tuple(float(n) for n in text.strip("()[] ").split(","))
    except ValueError:
        found = ()
    if not found or not all(map(math.isfinite, found)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number nor one a channel, such as 123.68,116.78,103.94"
        )
    return found


def finite_number(text: str) -> float:
    """A number, neither infinite nor NaN."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"{text!r} is no finite number")
    return found
