"""The record files of a run, read through `ImageRecordIter`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import io
from ..._core.manager import manager
from ..._io_files import lines_of
from ...base import error
from ...urls import with_ending

if TYPE_CHECKING:
    import argparse

__all__ = ["Data"]

#: The plugin that brings record iterators and the digits.
PLUGIN = "io_rec"

#: How training images vary: digits are shifted by up to 2 pixels, others cropped and mirrored if that is asked for.
SHIFTED = {"pad": 2, "fill_value": 0, "rand_crop": True}
MIRRORED = {"rand_crop": True, "rand_mirror": True}


class Data:
    """The iterators of a run: `train`, and `test` or None.

    Parameters
    ----------
    args : argparse.Namespace
        The options.
    image_shape : tuple of int
        (channels, height, width).
    part, parts : int
        Which share of the training images this worker reads, of how many.
    """

    def __init__(self, args: argparse.Namespace, image_shape: tuple[int, ...], part: int = 0, parts: int = 1) -> None:
        files = self._files(args)
        total = _listed(files["train"])
        #: Training images of this worker, None if there is no index that says it.
        self.count = None if total is None else len(range(part, total, parts))
        #: How many batches all workers have, so that none waits for others at the end of an epoch; None: not known.
        self.steps = None if total is None or parts == 1 else -(-(total // parts) // args.batch_size)
        common: dict[str, Any] = {
            "data_shape": image_shape,
            "batch_size": args.batch_size,
            "round_batch": False,
            "scale": 1 / 255,
            "preprocess_threads": 2,
            "verbose": False,
        }
        chance: dict[str, Any] = SHIFTED
        if args.rec:  # photos of any size
            common["resize"] = max(image_shape[1:])
            chance = MIRRORED if args.augment else {}
        self.train: Any = None
        self.test: Any = None
        try:
            self.train = io.ImageRecordIter(
                **files["train"], **common, **chance, shuffle=True, seed=args.seed, num_parts=parts, part_index=part
            )
            if "test" in files:
                self.test = io.ImageRecordIter(**files["test"], **common)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _files(args: argparse.Namespace) -> dict[str, dict[str, str]]:
        if args.rec:
            given = {"train": args.rec, "test": args.val_rec}
            return {split: {"path_imgrec": path} for split, path in given.items() if path}
        if args.val_rec:
            raise error(ValueError, "--val-rec needs --rec, the file to train with")
        manager.load()
        plugin = manager.pm.get_plugin(PLUGIN)
        if plugin is None:
            raise error(
                RuntimeError,
                f"the handwritten digits come with plugin {PLUGIN!r}, which is not loaded "
                "(`mxcore plugins` says why); give a file with --rec",
            )
        return {split: plugin.digits_files(split) for split in ("train", "test")}

    def close(self) -> None:
        """Close the files and end the threads."""
        for it in (self.train, self.test):
            if it is not None:
                it.close()


def _listed(files: dict[str, str]) -> int | None:
    """How many records the index of a file lists; None without one."""
    index = files.get("path_imgidx") or with_ending(files["path_imgrec"], ".idx")
    try:
        return sum(1 for _, line in lines_of(index, "mxcore train") if line.strip())
    except (OSError, ValueError):
        return None
