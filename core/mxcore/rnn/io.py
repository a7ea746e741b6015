"""Sentences as numbers, and batches of sentences of similar length."""

from __future__ import annotations

import bisect
import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import ndarray
from ..base import asserted, error
from ..io import DataBatch, DataDesc, DataIter

__all__ = ["BucketSentenceIter", "encode_sentences"]


def encode_sentences(
    sentences: Iterable[Iterable[str]],
    vocab: dict[str, int] | None = None,
    invalid_label: int = -1,
    invalid_key: str = "\n",
    start_label: int = 0,
    unknown_token: str | None = None,
) -> tuple[list[list[int]], dict[str, int]]:
    """Number the words of sentences.

    Parameters
    ----------
    sentences : iterable of iterable of str
        The words of each sentence.
    vocab : dict of str to int, optional
        Numbers of the words; else each new word gets the next number.
    invalid_label : int
        Number that no word gets; it stands for padding.
    invalid_key : str
        What it is called in the vocabulary.
    start_label : int
        First number.
    unknown_token : str, optional
        Takes the place of words that `vocab` lacks; all of them get its one number.

    Returns
    -------
    (list of list of int, dict of str to int)
        Sentences and vocabulary.

    Raises
    ------
    MXNetError
        (also KeyError) if `vocab` lacks a word and there is no `unknown_token`.

    Examples
    --------
    >>> encode_sentences([["a", "b"], ["b", "c"]], start_label=1)
    ([[1, 2], [2, 3]], {'\\n': -1, 'a': 1, 'b': 2, 'c': 3})
    """
    new = vocab is None
    known: dict[str, int] = {invalid_key: invalid_label} if vocab is None else vocab
    number = start_label
    found = []
    for sentence in sentences:
        coded = []
        for word in sentence:
            if word not in known:
                if not new and not unknown_token:
                    raise asserted(
                        KeyError, f"encode_sentences: vocab has no word {word!r}; give unknown_token for such words"
                    )
                if number == invalid_label:
                    number += 1
                if unknown_token:
                    word = unknown_token
                if word not in known:
                    known[word] = number
                    number += 1
            coded.append(known[word])
        found.append(coded)
    return found, known


class BucketSentenceIter(DataIter):
    """Batches of sentences of similar length, for language models: the label of a word is the word after it.

    Sentences are filled up to the length of their bucket with `invalid_label`; those longer than all buckets are left
    out.

    Parameters
    ----------
    sentences : list of list of int
        As `encode_sentences` gives them.
    batch_size : int
    buckets : list of int, optional
        Lengths, of which those without a sentence are left out; all with at least `batch_size` sentences unless told.
    invalid_label : int
        Fills up data and labels.
    data_name, label_name : str
    dtype : dtype
    layout : str
        ``'NT'`` or ``'TN'``.

    Raises
    ------
    MXNetError
        (also ValueError) if the layout is another, or no bucket holds a sentence.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1; the order comes from Python's ``random`` and from ``numpy.random``.

    Examples
    --------
    >>> import mxcore as mx
    >>> it = mx.rnn.BucketSentenceIter([[1, 2], [3, 4, 5]], 1, buckets=[4], invalid_label=0)
    WARNING: discarded 0 sentences longer than the largest bucket.
    >>> sorted(it.next().data[0].asnumpy()[0].tolist() for _ in range(2))
    [[1.0, 2.0, 0.0, 0.0], [3.0, 4.0, 5.0, 0.0]]
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[int]],
        batch_size: int,
        buckets: list[int] | None = None,
        invalid_label: int = -1,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: Any = "float32",
        layout: str = "NT",
    ) -> None:
        super().__init__(batch_size)
        batch_size = self.batch_size
        if layout not in ("NT", "TN"):
            raise error(ValueError, f"BucketSentenceIter: layout must be 'NT' or 'TN', not {layout!r}")
        self.major_axis = layout.find("N")
        if not buckets:
            counts: Any = np.bincount([len(s) for s in sentences]) if len(sentences) else ()
            buckets = [i for i, n in enumerate(counts) if n >= batch_size]
            if not buckets:
                raise error(
                    ValueError, f"BucketSentenceIter: there are no {batch_size} sentences of one length; give buckets"
                )
        self.buckets = sorted(buckets)
        rows: list[list[Any]] = [[] for _ in self.buckets]
        left_out = 0
        for s in sentences:
            b = bisect.bisect_left(self.buckets, len(s))
            if b == len(self.buckets):
                left_out += 1
                continue
            row = np.full((self.buckets[b],), invalid_label, dtype=dtype)
            row[: len(s)] = s
            rows[b].append(row)
        print(f"WARNING: discarded {left_out} sentences longer than the largest bucket.")
        if any(rows):  # buckets without a sentence are none, as in MXNet: the default bucket is the largest one used
            self.buckets, rows = map(list, zip(*((b, r) for b, r in zip(self.buckets, rows) if r)))
        self.data = [np.asarray(r, dtype=dtype) for r in rows]
        self.data_name, self.label_name = data_name, label_name
        self.dtype, self.invalid_label, self.layout = dtype, invalid_label, layout
        self.nddata: list[Any] = []
        self.ndlabel: list[Any] = []
        self.default_bucket_key = max(self.buckets)
        self.provide_data = self._described(data_name, self.default_bucket_key)
        self.provide_label = self._described(label_name, self.default_bucket_key)
        self.idx = [(i, j) for i, r in enumerate(self.data) for j in range(0, len(r) - batch_size + 1, batch_size)]
        if not self.idx:
            raise error(
                ValueError,
                f"BucketSentenceIter: no bucket of {self.buckets} holds a batch of {batch_size} sentences; there are "
                f"{[len(r) for r in self.data]}",
            )
        self.curr_idx = 0
        self.reset()

    def _described(self, name: str, length: int) -> list[Any]:
        shape = (self.batch_size, length) if self.major_axis == 0 else (length, self.batch_size)
        return [DataDesc(name=name, shape=shape, layout=self.layout)]

    def reset(self) -> None:
        """Shuffle batches and sentences, and begin again."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        self.nddata, self.ndlabel = [], []
        for r in self.data:
            np.random.shuffle(r)
            label = np.full_like(r, self.invalid_label)
            if r.size:
                label[:, :-1] = r[:, 1:]
            self.nddata.append(ndarray.array(r, dtype=self.dtype))
            self.ndlabel.append(ndarray.array(label, dtype=self.dtype))

    def next(self) -> Any:
        """The next batch; its ``bucket_key`` is the length."""
        if self.curr_idx == len(self.idx):
            raise StopIteration
        i, j = self.idx[self.curr_idx]
        self.curr_idx += 1
        data, label = self.nddata[i][j : j + self.batch_size], self.ndlabel[i][j : j + self.batch_size]
        if self.major_axis == 1:
            data, label = data.T, label.T
        length = self.buckets[i]
        return DataBatch(
            [data],
            [label],
            pad=0,
            bucket_key=length,
            provide_data=self._described(self.data_name, length),
            provide_label=self._described(self.label_name, length),
        )
