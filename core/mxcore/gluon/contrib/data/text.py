"""Published texts for language models: WikiText-2 and WikiText-103."""

from __future__ import annotations

import os
from collections import Counter
from itertools import chain
from typing import Any

import numpy as np

from .... import ndarray as nd
from ...._io_files import read_whole, regular
from ....base import error
from ....contrib import text
from ..._repository import data_dir, unpack
from ...data.vision.downloaded import _DownloadedDataset
from ._constants import EOS_TOKEN

__all__ = ["WikiText2", "WikiText103"]


class _LanguageModelDataset(_DownloadedDataset):
    """A text as numbers of words, with the vocabulary that numbers them."""

    def __init__(self, root: str | None, vocabulary: Any) -> None:
        self._vocab = vocabulary
        self._counter: Counter[str] | None = None
        super().__init__(data_dir("datasets", self._namespace) if root is None else root, None)

    @property
    def vocabulary(self) -> Any:
        """The words by number, a `Vocabulary`."""
        return self._vocab

    @property
    def frequencies(self) -> Counter[str] | None:
        """How often each word comes in the text, a ``collections.Counter``."""
        return self._counter

    def _build_vocab(self, content: str) -> None:
        self._counter = text.utils.count_tokens_from_str(content)
        if self._vocab is None:
            self._vocab = text.vocab.Vocabulary(self._counter, reserved_tokens=[EOS_TOKEN])


class _WikiText(_LanguageModelDataset):
    _archive: tuple[str, str]
    _files = {"train": "wiki.train.tokens", "validation": "wiki.valid.tokens", "test": "wiki.test.tokens"}

    def __init__(self, root: str | None = None, segment: str = "train", vocab: Any = None, seq_len: int = 35) -> None:
        owner = type(self).__name__
        if segment not in self._files:
            raise error(KeyError, f"{owner}: segment must be one of {', '.join(self._files)}, got {segment!r}")
        if not (isinstance(seq_len, (int, np.integer)) and seq_len > 0):
            raise error(ValueError, f"{owner}: seq_len must be a number of words above 0, got {seq_len!r}")
        if vocab is not None and not hasattr(vocab, "to_indices"):
            raise error(
                TypeError, f"{owner}: vocab must be a contrib.text.vocab.Vocabulary, got {type(vocab).__name__}"
            )
        self._segment = segment
        self._seq_len = int(seq_len)
        super().__init__(root, vocab)

    def _get_data(self) -> None:
        path = os.path.join(self._root, self._files[self._segment])
        if not os.path.exists(path):
            unpack(self._fetch(*self._archive), self._files.values(), self._root)
        numbers = self._numbers(path)
        rows = (len(numbers) - 1) // self._seq_len
        if rows < 1:
            raise error(
                ValueError,
                f"{path} has {len(numbers)} words, ends of lines included; "
                f"seq_len={self._seq_len} needs one more than that",
            )
        words = rows * self._seq_len
        self._data, self._label = (
            nd.array(part.reshape(rows, self._seq_len), dtype="int32")
            for part in (numbers[:words], numbers[1 : words + 1])
        )

    def _numbers(self, path: str) -> np.ndarray[Any, Any]:
        """The numbers of all words of a file, lines ending in `EOS_TOKEN`."""
        try:
            content = read_whole(regular(path)).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as e:
            raise error(ValueError, f"{path} is no text in UTF-8: {e}") from None
        self._build_vocab(content)
        lines = filter(None, map(str.split, content.splitlines()))
        numbers = (self._vocab.to_indices([*line, EOS_TOKEN]) for line in lines)
        return np.fromiter(chain.from_iterable(numbers), np.int32)


class WikiText2(_WikiText):
    """Two million words of Wikipedia's good articles (Merity et al., 2016, arXiv:1609.07843).

    A sample is `seq_len` words and the words that follow each of them, two NDArrays of int32.

    Parameters
    ----------
    root : str, default '~/.mxnet/datasets/wikitext-2'
        Folder with the published archive ``wikitext-2-v1.zip``, or with the files in it, such as ``wiki.train.tokens``;
        it is downloaded if neither is there.
    segment : {'train', 'validation', 'test'}, default 'train'
    vocab : Vocabulary, optional
        Numbers the words; made of those of the segment, with '<eos>' for the end of a line, if there is none.
    seq_len : int, default 35
        Words of a sample, whatever sentences they are in. What is left over is dropped.

    Raises
    ------
    MXNetError (FileNotFoundError)
        If the archive is not there and cannot be downloaded.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.contrib.data.text.WikiText2``. An archive that is not the published one, by
    its SHA-1 digest, is downloaded again, with a warning; texts are taken as they are. Licence: CC BY-SA 3.0.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mxcore.gluon.contrib.data import text
    >>> with tempfile.TemporaryDirectory() as root:
    ...     _ = pathlib.Path(root, "wiki.test.tokens").write_text("to be or\\nnot to be\\n")
    ...     words = text.WikiText2(root, segment="test", seq_len=3)
    >>> [words.vocabulary.to_tokens(part.asnumpy().tolist()) for part in words[0]]
    [['to', 'be', 'or'], ['be', 'or', '<eos>']]
    """

    _namespace = "wikitext-2"
    _archive = ("wikitext-2-v1.zip", "3c914d17d80b1459be871a5039ac23e752a53cbe")


class WikiText103(_WikiText):
    """A hundred million words of Wikipedia's good articles (Merity et al., 2016, arXiv:1609.07843).

    A sample is `seq_len` words and the words that follow each of them, two NDArrays of int32.

    Parameters
    ----------
    root : str, default '~/.mxnet/datasets/wikitext-103'
        Folder with the published archive ``wikitext-103-v1.zip``, or with the files in it.
    segment, vocab, seq_len
        As for `WikiText2`.

    Raises
    ------
    MXNetError (FileNotFoundError)
        If the archive is not there and cannot be downloaded.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.contrib.data.text.WikiText103``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mxcore.gluon.contrib.data import text
    >>> with tempfile.TemporaryDirectory() as root:
    ...     _ = pathlib.Path(root, "wiki.valid.tokens").write_text("a rose is a rose\\n")
    ...     words = text.WikiText103(root, segment="validation", seq_len=2)
    >>> len(words), words.frequencies["rose"]
    (2, 2)
    """

    _namespace = "wikitext-103"
    _archive = ("wikitext-103-v1.zip", "0aec09a7537b58d4bb65362fee27650eeaba625a")
