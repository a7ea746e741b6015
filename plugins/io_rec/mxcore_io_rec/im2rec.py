"""``mxcore im2rec``: make image lists, and record files from them.

mxcore im2rec --list --recursive data/cats images    # writes data/cats.lst
mxcore im2rec --resize 256 data/cats images          # writes data/cats.rec and data/cats.idx
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import random
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias, TypeVar

from mxcore.base import error
from mxcore.drafts import atomic_writer
from mxcore.plugin import let_through
from mxcore.urls import child, is_folder, is_url, parent, store, with_ending
from mxcore.util import makedirs

from . import codec
from .augment import crop, resize_short
from .recordio import IRHeader, MXIndexedRecordIO, pack
from .source import Uri, read_all

__all__ = ["add_arguments", "find_images", "help", "main", "make_list", "make_record", "read_list"]

help = "make image lists and record files of images"

#: Of a list: number, labels and path.
Line: TypeAlias = tuple[int, list[float], str]
Item = TypeVar("Item")
Result = TypeVar("Result")

_SEED = 100
_SHOWN = 20  # unreadable images that are named one by one


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments, which are those of MXNet's im2rec.py.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Where to add them.
    """
    parser.add_argument("prefix", help="the lists PREFIX*.lst, and the record files made of them; a path or URL")
    parser.add_argument("root", help="the folder of the images; a path, or, but for --list, a URL")
    lists = parser.add_argument_group("image lists")
    lists.add_argument("--list", action="store_true", help="write lists of the images below ROOT")
    lists.add_argument("--exts", nargs="+", default=[".jpeg", ".jpg", ".png"], help="endings of images")
    lists.add_argument("--chunks", type=int, default=1, help="how many lists to divide the images into")
    lists.add_argument("--train-ratio", type=float, default=1.0, help="share of the images to train with")
    lists.add_argument("--test-ratio", type=float, default=0.0, help="share of the images to test with")
    lists.add_argument("--recursive", action="store_true", help="search subfolders; each is a class")
    lists.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="keep the order of the names")
    records = parser.add_argument_group("record files")
    records.add_argument("--pass-through", action="store_true", help="store the files as they are")
    records.add_argument("--resize", type=int, default=0, help="length of the shorter edge; 0: as it is")
    records.add_argument("--center-crop", action="store_true", help="cut out the square in the centre")
    records.add_argument("--quality", type=int, default=95, help="1 to 100 for JPEG, compression 1 to 9 for PNG")
    records.add_argument("--num-thread", type=int, default=1, help="threads; the order does not depend on them")
    records.add_argument("--color", type=int, choices=[-1, 0, 1], default=1, help="1 colour, 0 grey, -1 as stored")
    records.add_argument("--encoding", choices=[".jpg", ".png"], default=".jpg", help="format in the record file")
    records.add_argument("--pack-label", action="store_true", help="store all labels of a line, not the first only")
    records.add_argument("--strict", action="store_true", help="stop at the first image that cannot be read")


def find_images(
    root: Uri, recursive: bool = False, exts: Sequence[str] = (".jpeg", ".jpg", ".png")
) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """Find the images in a folder.

    Parameters
    ----------
    root : str or os.PathLike
        The folder.
    recursive : bool
        Search subfolders too: each folder with images is a class of its own, numbered in the order of their
        names. Otherwise the class is 0.
    exts : sequence of str
        Endings of images; capitals do not matter.

    Returns
    -------
    (list of (str, int), dict of str to int)
        Paths below `root`, with ``/``, and classes; and the classes of the folders.

    Raises
    ------
    MXNetError
        (also NotADirectoryError) if there is no such folder.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``tools/im2rec.py``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "b.jpg").write_bytes(b"")
    ...     find_images(folder)
    ([('b.jpg', 0)], {'.': 0})
    """
    if is_url(root):
        raise error(
            ValueError,
            f"im2rec: {os.fspath(root)!r} is a URL; --list looks for images in a folder on this machine only. Make "
            "record files of a list that names what is there",
        )
    if not is_folder(root):
        raise error(NotADirectoryError, f"{os.fspath(root)!r} is no folder; ROOT must hold the images")
    endings = {ext.lower() for ext in exts}
    images: list[tuple[str, int]] = []
    classes: dict[str, int] = {}
    seen: set[str] = set()
    for folder, subfolders, names in os.walk(root, onerror=_left_out, followlinks=True):
        subfolders.sort()
        if not recursive:
            subfolders.clear()
        # Links may lead round and round: two of them in one folder make 2**40 paths.
        place = os.path.realpath(folder)
        if place in seen:
            print(f"im2rec: {folder} is {place}, whose images are listed already; it is left out", file=sys.stderr)
            subfolders.clear()
            continue
        seen.add(place)
        below = Path(folder).relative_to(root)
        for name in sorted(names):
            path = (below / name).as_posix()
            if os.path.splitext(name)[1].lower() not in endings:
                continue
            if any(c in path for c in "\t\r\n"):
                print(f"im2rec: {path!r} is left out: no list can hold a tab or the end of a line", file=sys.stderr)
                continue
            images.append((path, classes.setdefault(below.as_posix(), len(classes))))
    return images, classes


def _left_out(e: OSError) -> None:
    print(f"im2rec: {e.filename} is left out: {e.strerror}", file=sys.stderr)


def make_list(args: argparse.Namespace) -> list[str]:
    """Write the lists that the arguments ask for.

    Parameters
    ----------
    args : argparse.Namespace
        See `add_arguments`.

    Returns
    -------
    list of str
        Paths of the lists.

    Raises
    ------
    MXNetError
        (also ValueError) if the shares or chunks make no sense, or there is no image.
    """
    ratios = args.train_ratio, args.test_ratio
    if args.chunks < 1 or min(ratios) < 0 or sum(ratios) > 1:
        raise error(
            ValueError,
            f"im2rec: chunks must be at least 1, and the ratios at least 0 and together at most 1; got "
            f"{args.chunks}, {args.train_ratio} and {args.test_ratio}",
        )
    images, classes = find_images(args.root, args.recursive, args.exts)
    if not images:
        more = "" if args.recursive else "; --recursive searches its subfolders"
        raise error(ValueError, f"im2rec: {args.root!r} holds no image ({' '.join(args.exts)}){more}")
    if args.recursive:
        for name, label in classes.items():
            print(name, label)
    lines = [(i, float(label), path) for i, (path, label) in enumerate(images)]
    if args.shuffle:
        random.Random(_SEED).shuffle(lines)
    size = -(-len(lines) // args.chunks)
    written = []
    for k in range(args.chunks):
        chunk = lines[k * size : (k + 1) * size]
        test = int(size * args.test_ratio)
        train = test + int(size * args.train_ratio)
        parts = {"test": chunk[:test], "train": chunk[test:train], "val": chunk[train:]}
        if args.train_ratio == 1:
            parts = {"": chunk}
        for name, part in parts.items():
            if part or not name:
                stem = args.prefix + (f"_{k}" if args.chunks > 1 else "") + (f"_{name}" if name else "")
                written.append(_write_list(f"{stem}.lst", part))
    return written


def _write_list(path: str, lines: list[tuple[int, float, str]]) -> str:
    makedirs(parent(path))
    with atomic_writer(path) as f:
        for i, label, name in lines:
            f.write(f"{i}\t{label:f}\t{name}\n".encode(errors="surrogateescape"))
    return path


def read_list(path: Uri) -> list[Line]:
    """Read an image list.

    Parameters
    ----------
    path : str or os.PathLike
        Lines of number, labels and path, with tabs between.

    Returns
    -------
    list of (int, list of float, str)

    Raises
    ------
    MXNetError
        (also ValueError) naming file and line, if a line holds something else.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.lst")
    ...     _ = path.write_text("7\\t1\\t2.5\\tcat.jpg\\n")
    ...     read_list(path)
    [(7, [1.0, 2.5], 'cat.jpg')]
    """
    lines = []
    # Names of files may be any bytes.
    for number, line in enumerate(read_all(path).decode(errors="surrogateescape").split("\n"), 1):
        fields = [field.strip() for field in line.split("\t")]
        if fields == [""]:
            continue
        try:
            if len(fields) < 3:
                raise ValueError("there are fewer than three fields")
            if not 0 <= (index := int(fields[0])) < 1 << 64:
                raise ValueError("the number must be at least 0 and less than 2**64")
            lines.append((index, [float(field) for field in fields[1:-1]], fields[-1]))
        except ValueError as e:
            where = f"line {number} of {os.fspath(path)!r} is {line[:80]!r}"
            raise error(ValueError, f"{where}: {e}; expected number, labels, path, tabs between") from e
    return lines


def _record(line: Line, args: argparse.Namespace) -> bytes:
    """The record of one line of a list."""
    number, labels, name = line
    data = read_all(child(args.root, name))
    if not args.pass_through:
        image = codec.decode(data, args.color)
        if args.center_crop:
            edge = min(image.shape[:2])
            image = crop(image, edge, edge)
        if args.resize:
            image = resize_short(image, args.resize)
        data = codec.encode(image, args.encoding, args.quality)
    elif not data:
        raise ValueError("the file is empty")
    label = labels if args.pack_label and len(labels) > 1 else labels[0]
    return pack(IRHeader(0, label, number, 0), data)


def _in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Generator[Result | Exception, None, None]:
    """Results or errors of a function for each item, in the order of the items."""

    def attempt(item: Item) -> Result | Exception:
        try:
            return function(item)
        except Exception as e:
            let_through(e)
            return e

    if threads <= 1:
        yield from map(attempt, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="mxcore-im2rec") as pool:
        coming: deque[Future[Result | Exception]] = deque()
        try:
            for item in items:
                coming.append(pool.submit(attempt, item))
                if len(coming) > 8 * threads:  # enough to keep them busy, not all images in memory
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for future in coming:
                future.cancel()


def _progress(iterable: Iterable[Item], total: int, text: str) -> Iterable[Item]:
    try:
        from tqdm import tqdm
    except ImportError:
        return iterable
    shown: Iterable[Item] = tqdm(iterable, total=total, desc=text, unit="img", disable=None if sys.stderr else True)
    return shown


def make_record(path: str, args: argparse.Namespace) -> tuple[int, list[tuple[str, str]]]:
    """Make the record file and index of a list, beside it.

    Parameters
    ----------
    path : str
        The list. The files appear, complete, under its name with ``.rec`` and ``.idx``.
    args : argparse.Namespace
        See `add_arguments`.

    Returns
    -------
    (int, list of (str, str))
        How many images were stored, and which could not be read, and why.

    Raises
    ------
    MXNetError
        (also ValueError or OSError) if the list or, with `strict`, an image cannot be read, or a file
        cannot be written.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``tools/im2rec.py``; the order of the list is kept with any number of
    threads.
    """
    lines = read_list(path)
    stored = 0
    unreadable: list[tuple[str, str]] = []
    with MXIndexedRecordIO(with_ending(path, ".idx"), with_ending(path, ".rec"), "w") as record:
        results = _in_order(lambda line: _record(line, args), lines, args.num_thread)
        with contextlib.closing(results):
            for line, result in zip(lines, _progress(results, len(lines), os.path.basename(with_ending(path, "")))):
                if not isinstance(result, Exception):
                    record.write_idx(line[0], result)
                    stored += 1
                    continue
                if args.strict or not isinstance(result, (OSError, ValueError)):
                    raise error(
                        type(result) if type(result) in (ValueError, OSError) else ValueError,
                        f"im2rec: image {line[2]!r} of {path!r} cannot be read: {result}",
                    ) from result
                unreadable.append((line[2], str(result)))
    return stored, unreadable


def _lists(prefix: str) -> list[str]:
    """The lists whose names begin with a prefix."""
    if is_url(prefix):
        fs, path = store(prefix)
        folder, begin = (prefix, "") if fs.isdir(path) else (parent(prefix), path.rpartition("/")[2])
        names = (name.rpartition("/")[2] for name in fs.glob(f"{glob.escape(store(folder)[1].rstrip('/'))}/*.lst"))
        return [child(folder, name) for name in sorted(names) if name.startswith(begin)]
    if is_folder(prefix):
        prefix = os.path.join(prefix, "")
    return sorted(glob.glob(f"{glob.escape(prefix)}*.lst"))


def main(args: argparse.Namespace) -> int:
    """Run the command.

    Parameters
    ----------
    args : argparse.Namespace
        See `add_arguments`.

    Returns
    -------
    int
        0, or 1 if none of the images could be read. A few that could not are only told of, as in MXNet.
    """
    if args.list:
        for path in make_list(args):
            print(f"wrote {path}")
        return 0
    paths = _lists(args.prefix)
    if not paths:
        raise error(FileNotFoundError, f"im2rec: there is no list {args.prefix}*.lst; --list makes one")
    if args.num_thread < 1:
        raise error(ValueError, f"im2rec: --num-thread must be at least 1, got {args.num_thread}")
    if args.resize < 0:
        raise error(ValueError, f"im2rec: --resize must be a length, or 0 for none, got {args.resize}")
    total = 0
    for path in paths:
        stored, unreadable = make_record(path, args)
        total += stored
        print(f"wrote {with_ending(path, '.rec')}: {stored} images, {len(unreadable)} unreadable")
        for name, reason in unreadable[:_SHOWN]:
            print(f"  unreadable: {name}: {reason}", file=sys.stderr)
        if len(unreadable) > _SHOWN:
            print(f"  … and {len(unreadable) - _SHOWN} more", file=sys.stderr)
    return 0 if total else 1


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="im2rec", description=f"{help[0].upper()}{help[1:]}.")
    add_arguments(_parser)
    sys.exit(main(_parser.parse_args()))
