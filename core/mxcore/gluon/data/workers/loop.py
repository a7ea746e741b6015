"""What runs inside a worker process."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.random  # NumPy does so when it is first used; a fork in the midst of that could never use it

from ...._scopes import take_modes
from ....base import plain
from ....context import cpu
from .transport import pack, receive, send

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from ..dataset import Dataset

__all__ = ["Failure", "run"]


class Failure:
    """An exception on its way to the loader: pickled if that can be done, and as text."""

    def __init__(self, exception: BaseException, where: str) -> None:
        self.text = f"{where}\n{traceback.format_exc()}"
        try:
            self.pickled: bytes | None = pickle.dumps(exception)
            pickle.loads(self.pickled)
        except Exception:
            self.pickled = None
        self.name = type(exception).__name__


def _seed(seed: int) -> None:
    """Make everything random that a dataset uses depend on the job only, not on the worker that gets it."""
    from .... import random as mx_random

    random.seed(seed)
    np.random.seed(seed)
    mx_random.seed(seed)


def _make(dataset: Dataset, batchify: Callable[..., Any], indices: Sequence[Any], where: str) -> tuple[bool, Any]:
    at = None
    try:
        samples = []
        for at in indices:
            samples.append(dataset[at])
        at = None
        return False, pack(batchify(samples))
    except BaseException as e:  # a SystemExit or KeyboardInterrupt, too, is the dataset's own: see `run`
        doing = f"{where}, while reading sample {plain(at)!r}" if at is not None else f"{where}, while making the batch"
        return True, pack(Failure(e, doing))


def run(conn: Connection, number: int, parent: int, folder: str, work: tuple[Any, ...] | bytes) -> None:
    """Serve jobs until the loader closes the connection or is gone.

    Parameters
    ----------
    conn : Connection
        To the loader.
    number : int
        Of this worker.
    parent : int
        Process id of the loader, which need not have started this process itself: a fork server may have.
    folder : str
        For temporary files.
    work : tuple or bytes
        Dataset, batchify function and the meaning of shapes and arrays (`modes`), pickled if this process does not
        share them by fork.
    """
    # Ctrl-C reaches the whole group; the loader decides what happens to its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if "cv2" in sys.modules:
        # One image a worker at a time; its threads would take the others' cores. (1 hangs in a forked child,
        # 0 is well.)
        getattr(sys.modules["cv2"], "setNumThreads", int)(0)  # of a module half imported it is missing
    where = f"In DataLoader worker {number} (process {os.getpid()})"
    lost = None
    # Its end shows at the connection and the sentinel, unless a process that it has forked holds them open. Children of
    # its own see it then; those of a fork server have another parent.
    loader: Any = multiprocessing.parent_process()
    child = os.getppid() == parent
    try:
        dataset, batchify, modes = pickle.loads(work) if isinstance(work, bytes) else work
        take_modes(*modes)
    except Exception as e:  # for whoever asks: a worker that ends here tells the loader nothing
        lost = True, pack(Failure(e, f"{where}, while it took over dataset and batchify_fn"))
    try:
        while True:
            while conn not in (ready := wait([conn, loader.sentinel], 2.0)):
                if ready or child and os.getppid() != parent:
                    return
            (job, seed), indices = receive(conn)
            _seed(seed)
            with cpu():  # whatever the loader's: a forked process cannot use its GPUs
                failed, parts = lost or _make(dataset, batchify, indices, where)
            try:
                send(conn, (job, failed), parts, folder, f"the batch of DataLoader worker {number}")
            except OSError as e:
                if isinstance(e, (BrokenPipeError, ConnectionResetError)):
                    return
                why = pack(Failure(e, f"{where}, while handing the batch over"))
                send(conn, (job, True), why, folder, f"an error of DataLoader worker {number}")
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
