"""What all iterators over record files share: planning, threads, damage, and going on later."""

from __future__ import annotations

import functools
import logging
import random
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from mxcore.base import MXNetError, MXNetWarning, error
from mxcore.io import BatchCursor, DataDesc, MXDataIter
from mxcore.plugin import Context, let_through, processors

from . import codec
from .codec import Array, Image
from .header import IRHeader, unpack
from .labels import read_labels
from .loader import Loader
from .normalize import Normalizer
from .order import Order
from .params import Table, parse
from .records import Records
from .source import ReplacedError

__all__ = ["RecordIter"]

_FLAGS = {1: codec.GREY, 3: codec.COLOR, 4: codec.AS_STORED}
_KINDS = (ValueError, TypeError, KeyError, OSError, MemoryError)

# Records that decode faster than threads can hand over the interpreter's lock: more threads make it slower.
_SMALL = 2048

log = logging.getLogger("mxcore.io")


class Batch:
    """A batch under way.

    Parameters
    ----------
    examples : list of (int, int, int)
        Epoch, place in the epoch and record number of each example.
    pad : int
        How many of them, at the end, only fill the batch.
    state : dict
        State of the cursor behind this batch.
    data, label, index : numpy.ndarray
        What the tasks fill.
    """

    def __init__(
        self,
        examples: list[tuple[int, int, int]],
        pad: int,
        state: dict[str, Any],
        data: Array,
        label: Array,
        index: Array,
    ) -> None:
        self.examples, self.pad, self.state = examples, pad, state
        self.data, self.label, self.index = data, label, index
        self.failures: dict[int, Exception] = {}  # place in the batch -> error

    def leave_out_failures(self) -> None:
        """Fill the places of the examples that failed with copies of others, behind those that count."""
        size = len(self.examples)
        sound = [i for i in range(size - self.pad) if i not in self.failures]
        self.pad = size - len(sound)
        if sound:
            rows = np.resize(sound, size)
            self.data, self.label, self.index = self.data[rows], self.label[rows], self.index[rows]


class RecordIter(MXDataIter):
    """Base of the iterators over record files of images.

    A subclass has the tables of its parameters in `tables`, and `label_shape`, `label` and `image`.

    Parameters
    ----------
    **parameters
        Those of the tables.
    """

    tables: tuple[Table, ...] = ()
    normalize: Normalizer
    default_dtype = "float32"
    _FIXED = ("batch_size", "round_batch", "shuffle", "seed", "seed_aug", "num_parts", "part_index")

    def __init__(self, **parameters: Any) -> None:
        name = type(self).__name__
        if not isinstance(parameters.get("dtype", ""), (str, type(None))):
            parameters["dtype"] = np.dtype(parameters["dtype"]).name
        p = self.params = parse(name, self.tables, parameters)
        super().__init__(p.batch_size, p.data_name, p.label_name)
        if len(p.data_shape) != 3 or p.data_shape[0] not in _FLAGS or min(p.data_shape) < 1:
            raise error(
                ValueError,
                f"{name}: data_shape must be (channels, height, width) with 1, 3 or 4 channels, got {p.data_shape}",
            )
        if p.part_index >= p.num_parts:
            raise error(
                ValueError, f"{name}: part_index {p.part_index} is none of the {p.num_parts} parts, counted from 0"
            )
        self.dtype = np.dtype(p.dtype or self.default_dtype)
        self._empty = Context("cpu").device.empty
        self.skipped = 0  # records left out because of on_error
        self.chance = True  # whether images need a generator; making one takes longer than decoding a digit
        self.listed = read_labels(p.path_imglist, p.label_width) if p.path_imglist else None
        self.records = Records(p.path_imgrec, p.path_imgidx or None, p.on_error)
        self._order = Order(self.records.known, p.shuffle, p.seed, p.num_parts, p.part_index)
        if not self._order.known(1):
            raise error(
                ValueError, f"{name}: part {p.part_index} of {p.num_parts} of {p.path_imgrec!r} holds no record"
            )
        self._seed = (p.seed if p.seed_aug is None else p.seed_aug) % (1 << 64)
        self._threads = min(p.preprocess_threads, processors())
        if self.records.room(0) < _SMALL and getattr(sys, "_is_gil_enabled", lambda: True)():
            self._threads = 1
        me: Callable[[], Any] = weakref.ref(self)  # no cycle: an iterator that is dropped goes at once
        self._loader = Loader(lambda: me()._plan(), lambda batch: me()._tasks(batch), self._threads, p.prefetch_buffer)
        self._begin()
        if p.verbose:
            log.info("%s: %s, decoding in %d threads", name, p.path_imgrec, self._threads)

    def _begin(self) -> None:
        """Stand before the first epoch."""
        self._loader.restart()
        self._cursor = BatchCursor(self._order.known, self.batch_size, self.params.round_batch)
        self._state = self._cursor.state_dict()  # behind the last batch that was handed out

    def describe(self) -> None:
        """Set `provide_data` and `provide_label`."""
        size, p = self.batch_size, self.params
        self.provide_data = [DataDesc(p.data_name, (size, *p.data_shape), self.dtype.type)]
        self.provide_label = [DataDesc(p.label_name, (size, *self.label_shape()), np.float32)]

    # -- what subclasses have ------------------------------------------------------------------------
    def label_shape(self) -> tuple[int, ...]:
        """Return the shape of the labels of one example."""
        return ()

    def label(self, header: IRHeader) -> Array:
        """Return the label in a record's header, as a flat array."""
        label: Array = header.label
        return label

    def image(self, image: Image, label: Array, rng: random.Random, out_image: Array, out_label: Array) -> None:
        """Write a decoded image and its label, augmented, to their places in the batch.

        Parameters
        ----------
        image : numpy.ndarray
            (height, width) or (height, width, channels), uint8, channels from blue to red.
        label : numpy.ndarray
            What `label` returned.
        rng : random.Random
            The source of all chance.
        out_image, out_label : numpy.ndarray
            Where the results go: shape `data_shape` and `label_shape`.
        """

    # -- planning and decoding -----------------------------------------------------------------------
    def _plan(self) -> Batch:
        spans, pad = self._cursor.next()
        examples = [
            (epoch, begin + i, record)
            for epoch, begin, end in spans
            for i, record in enumerate(self._order.take(epoch, begin, end))
        ]
        size = self.batch_size
        data, label = (size, *self.params.data_shape), (size, *self.label_shape())
        try:
            arrays = {
                "data": self._empty(data, self.dtype, 0),  # memory of batches that nobody has any more
                "label": np.empty(label, np.float32),
                "index": np.zeros(size, np.uint64),
            }
        except (MemoryError, ValueError) as e:  # the latter where there is no such array at all
            raise error(
                MemoryError, f"{type(self).__name__}: no memory for a batch, images {data} and labels {label}: {e}"
            ) from e
        return Batch(examples, pad, self._cursor.state_dict(), **arrays)

    def _tasks(self, batch: Batch) -> list[Callable[[], None]]:
        """Callables that fill a batch, one for each thread."""
        size = self.batch_size
        step = -(-size // self._threads)
        return [
            functools.partial(self._fill, batch, range(first, min(first + step, size)))
            for first in range(0, size, step)
        ]

    def _fill(self, batch: Batch, places: range) -> None:
        """Make some of the examples of a batch; runs in a thread."""
        for i in places:
            epoch, place, record = batch.examples[i]
            try:
                header, data = unpack(self.records.read(record))
                batch.index[i] = header.id
                rng: Any = random.Random(self._seed << 96 | epoch << 64 | place) if self.chance else None
                label = self._listed(header) if self.listed is not None else self.label(header)
                self.image(self._decode(data), label, rng, batch.data[i], batch.label[i : i + 1])
            except ReplacedError:  # no record is damaged: all of them are others
                raise
            except Exception as e:
                let_through(e)
                problem = self._explained(e, record)
                if self.params.on_error == "raise":
                    raise problem from e
                batch.failures[i] = problem

    def _decode(self, data: codec.Buffer) -> Image:
        shape = self.params.data_shape
        image = codec.decode(data, _FLAGS[shape[0]])
        channels = 1 if image.ndim == 2 else image.shape[2]
        if channels != shape[0]:
            raise error(ValueError, f"the image has {channels} channels, but data_shape is {shape}")
        if image.dtype != np.uint8:
            raise error(ValueError, f"the image has values of {image.dtype}; only uint8 is supported")
        return image

    def _listed(self, header: IRHeader) -> Array:
        assert self.listed is not None  # who calls has looked
        try:
            return self.listed[header.id]
        except KeyError:
            path = self.params.path_imglist
            raise error(KeyError, f"the list {path!r} has no labels for id {header.id}") from None

    def _explained(self, e: Exception, record: int) -> Exception:
        """The error to raise for a record: with its number, file and offset."""
        where = self.records.where(record)
        if isinstance(e, MXNetError) and where.partition(" of ")[2] in str(e):
            return e
        kind = next((kind for kind in _KINDS if isinstance(e, kind)), RuntimeError)
        return error(kind, f"{type(self).__name__}: {where}: {e}")

    # -- iterating -----------------------------------------------------------------------------------
    def next_arrays(self) -> tuple[list[Array], list[Array], int, Array]:
        while True:
            batch = self._loader.next()
            self._state = batch.state
            for problem in batch.failures.values():
                self.skipped += 1
                if self.params.on_error == "warn":
                    warnings.warn(f"left out: {problem}", MXNetWarning, stacklevel=4)
            if batch.failures:
                batch.leave_out_failures()
            if batch.pad < self.batch_size:
                return [batch.data], [batch.label], batch.pad, batch.index

    def reset(self) -> None:
        super().reset()
        self._loader.restart()
        self._cursor.load_state_dict(self._state)  # what was planned ahead is not to count
        self._cursor.reset()
        self._state = self._cursor.state_dict()

    def close(self) -> None:
        """End the threads and close the files; the iterator is of no use afterwards."""
        self._loader.close()
        self.records.close()

    def state_dict(self) -> dict[str, Any]:
        """Return where the iterator stands.

        Returns
        -------
        dict
            Plain values, fit for JSON: an iterator with the same parameters that loads them goes on with
            exactly the batches that would have followed here.
        """
        fixed = {name: getattr(self.params, name) for name in self._FIXED}
        return {"version": 1, "skipped": self.skipped, **self._state, **fixed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another iterator stood.

        Parameters
        ----------
        state : dict
            What `state_dict` of an iterator with the same parameters returned.

        Raises
        ------
        MXNetError
            (also ValueError) if it is no such state, or the parameters that decide the batches were others.
        """
        name = type(self).__name__
        if not isinstance(state, dict) or state.get("version") != 1:
            raise error(ValueError, f"{name}: this is no state that state_dict() returned: {state!r}")
        for key in self._FIXED:
            mine, others = getattr(self.params, key), state.get(key)
            if mine != others:
                raise error(ValueError, f"{name}: the state was made with {key}={others!r}, not {mine!r}")
        if not isinstance(state.get("skipped"), int):
            raise error(ValueError, f"{name}: the state tells of {state.get('skipped')!r} records that were left out")
        self._loader.restart()
        self._cursor.load_state_dict(state)
        self._state = self._cursor.state_dict()
        self.skipped = state["skipped"]
