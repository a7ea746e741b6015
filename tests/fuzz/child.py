"""The process that reads damaged files: a line before each case, and one after it."""

from __future__ import annotations

import json
import random
import shutil
import sys
import traceback
import warnings
from pathlib import Path

from .formats import FORMATS, Format, Sample
from .mutators import mutated

__all__ = ["damaged", "outcome", "serve"]


def damaged(name: str, seed: str, samples: list[Sample]) -> Sample:
    """A sample of a format with one of its files damaged, by a seed alone."""
    rnd = random.Random(f"{name}:{seed}")
    sample = dict(rnd.choice(samples))
    which = rnd.choice(sorted(sample))
    sample[which] = mutated(sample[which], rnd)
    return sample


def outcome(fmt: Format, folder: Path) -> tuple[str, str]:
    """('read', ''), ('refused', '') or ('failed', what was raised)."""
    from mxcore.base import MXNetError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # ours, which tell of what is left out
            fmt.read(folder)
    except MXNetError:
        return "refused", ""
    except Exception as e:
        frames = traceback.extract_tb(e.__traceback__)
        last = ([f for f in frames if "mxcore" in f.filename] or frames)[-1]
        return "failed", json.dumps(
            {
                "kind": type(e).__name__,
                "at": f"{last.filename}:{last.lineno}",
                "text": "".join(traceback.format_exception(e, limit=-6))[-4000:],
            }
        )
    return "read", ""


def put(folder: Path, sample: Sample) -> None:
    """Write the files of a sample."""
    folder.mkdir(exist_ok=True)
    for name, data in sample.items():
        (folder / name).write_bytes(data)


def serve(names: list[str], seed: str, first: int, folder: Path, memory: int) -> None:
    """Read sound samples, then damaged ones without end, each in a folder named by its number; those that fail stay."""
    from mxcore.testing.robust import bounded_memory

    sound = {}
    for name in names:
        print("sound", name, flush=True)
        sound[name] = FORMATS[name].samples()
        for sample in sound[name]:
            put(folder, sample)
            FORMATS[name].read(folder)
    with bounded_memory(memory):
        for k in range(first, sys.maxsize):
            name = names[k % len(names)]
            print("case", name, f"{seed}/{k}", flush=True)
            here = folder / str(k)
            put(here, damaged(name, f"{seed}/{k}", sound[name]))
            found = outcome(FORMATS[name], here)
            if found[0] != "failed":
                shutil.rmtree(here, ignore_errors=True)
            print("end", *found, flush=True)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    serve(given["names"], given["seed"], given["first"], Path(given["folder"]), given["memory"])
