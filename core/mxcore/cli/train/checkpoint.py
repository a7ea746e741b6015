"""Checkpoints: parameters and trainer states in MXNet's formats, and a note of where the run stands."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._io_files import make_folder, modified, names_in, read_text, read_whole, regular, remove, write_atomic
from ..._json import decode
from ...base import MXNetError, error
from ...drafts import settle, together
from ...urls import child, is_url, parent, with_ending

if TYPE_CHECKING:
    from .loop import Run

__all__ = ["folder", "load", "path", "save"]

#: What makes up a checkpoint: the other files belong to the parameters; one with a note is complete.
KINDS = (".params", ".states", ".json")


def path(run: Run, kind: str, epoch: int | None = None) -> str:
    """Path or URL of a file of a checkpoint: ``OUTPUT/lenet-0012.params``."""
    return child(run.args.output, f"{run.args.network}-{run.epoch if epoch is None else epoch:04d}{kind}")


def folder(where: str) -> None:
    """Make the folder for what comes out.

    Raises
    ------
    MXNetError
        (also OSError) if that cannot be.
    """
    try:
        make_folder(where)
    except MXNetError as e:
        raise error(type(e), f"--output: {e}") from e


def _about(run: Run) -> dict[str, Any]:
    """What must agree for a checkpoint to fit a run."""
    return {
        "api": run.args.api,
        "network": run.args.network,
        "num_classes": run.args.num_classes,
        "data_shape": list(run.shape),
    }


def save(run: Run) -> None:
    """Write a checkpoint after an epoch, then remove the one before it.

    Parameters
    ----------
    run : Run
    """
    note = {**_about(run), "epoch": run.epoch, "history": run.history, "images": run.data.train.state_dict()}
    # A run before this one may have left a checkpoint of the same name.
    with together(*(path(run, kind) for kind in KINDS)):
        run.learner.save(child(run.args.output, run.args.network), run.epoch)
        write_atomic(path(run, ".json"), json.dumps(note, indent=1).encode())
    _prune(run)


def _prune(run: Run) -> None:
    """Remove the checkpoint before the present one, the note first: what is left without one is none."""
    for kind in reversed(KINDS):
        remove(path(run, kind, run.epoch - 1))


def last(run: Run) -> str | None:
    """The note of the checkpoint written last, if there is one."""
    try:
        names = set(names_in(run.args.output))
    except FileNotFoundError:
        return None
    # The owner of the others is complete first: a writer that was killed may have left the note waiting for its name.
    found = re.compile(rf"({re.escape(run.args.network)}-\d+){re.escape(KINDS[0])}")
    owners = [m for m in map(found.fullmatch, names) if m is not None]
    notes = [child(run.args.output, m[1] + KINDS[-1]) for m in owners]
    whole = [n for n in notes if all(_is_there(n, kind, names) for kind in KINDS)]
    return max(whole, key=lambda n: (modified(n), n), default=None)


def _is_there(note: str, kind: str, names: set[str]) -> bool:
    """Whether a checkpoint has a file, which a writer that was killed may have left waiting."""
    name = with_ending(note, kind)
    if is_url(note):
        return name.rpartition("/")[2] in names
    return os.path.exists(settle(name, with_ending(note, KINDS[0])))


def load(run: Run, alone: bool = False) -> bool:
    """Go on where the checkpoint written last stands.

    The first worker looks for it and hands it to the others, who need not see its folder.

    Parameters
    ----------
    run : Run
    alone : bool
        Whether this worker looks for itself, for the others do not wait for it.

    Returns
    -------
    bool
        Whether there is one.

    Raises
    ------
    MXNetError
        (also ValueError) if it is of another network.
    """
    newest = last(run) if alone or run.workers.first else None
    if newest is not None:
        for kind in KINDS:
            regular(with_ending(newest, kind))
    found = _load(run, newest, alone)
    if newest is not None and run.workers.first:
        with contextlib.suppress(OSError):  # it may be removed when it is written next
            _prune(run)  # which `save` did not come to, if it was killed
    return found


def _load(run: Run, newest: str | None, alone: bool) -> bool:
    if not alone:
        packed = run.workers.of_the_first(_pack(newest) if newest else b"")
        if packed and newest is None:
            with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(io.BytesIO(packed)) as files:
                files.extractall(folder)
                _take_over(run, str(next(Path(folder).glob("*.json"))))
            return True
    if newest is None:
        return False
    _take_over(run, newest)
    return True


def _pack(newest: str) -> bytes:
    """The files of a checkpoint in one."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        for kind in KINDS:
            file = with_ending(newest, kind)
            files.writestr(os.path.basename(file), read_whole(file))
    return packed.getvalue()


def _take_over(run: Run, newest: str) -> None:
    note = _read(newest)
    for name, mine in _about(run).items():
        if note[name] != mine:
            raise error(ValueError, f"--resume: {newest!r} was made with {name} {note[name]!r}, not {mine!r}")
    run.learner.load(child(parent(newest), run.args.network), note["epoch"])
    run.epoch, run.history = note["epoch"], note["history"]
    try:  # the first worker wrote it, and stands in its own part where this one stands in its
        run.data.train.load_state_dict({**note["images"], "part_index": run.workers.rank})
    except (TypeError, ValueError) as e:
        print(f"note: the images come in another order than before ({e})")


def _is_epoch(n: Any) -> bool:
    return type(n) is int and 0 <= n < 1 << 31


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and {"epoch", "loss"} <= set(entry)
        and _is_epoch(entry["epoch"])
        and all(isinstance(v, float) or (isinstance(v, int) and abs(v) < 1 << 63) for v in entry.values())
    )


def _read(note: str) -> dict[str, Any]:
    try:
        found = decode(read_text(note), "it")
        if {"epoch", "history", "images", "network", "num_classes", "data_shape"} <= set(found):
            if (
                _is_epoch(found["epoch"])
                and isinstance(found["history"], list)
                and all(map(_is_entry, found["history"]))
            ):
                return {"api": "gluon", **found}
            problem = "its epoch is no number, or its history no list of epochs and losses"
        else:
            problem = "it lacks what a checkpoint holds"
    except (ValueError, TypeError) as e:
        problem = str(e)
    raise error(ValueError, f"--resume: {note!r} is damaged: {problem}; remove it to go on from an older one")
