"""Numbers for words."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

from ...base import asserted, error

__all__ = ["Vocabulary"]


class Vocabulary:
    """Words by number, the most frequent first, and numbers by word.

    Parameters
    ----------
    counter : collections.Counter, optional
        How often each word came.
    most_freq_count : int, optional
        Take this many of them at most.
    min_freq : int
        Take words that came at least this often.
    unknown_token : str
        Number 0; stands for all words that are not there.
    reserved_tokens : list of str, optional
        Come next, whether they were counted or not.

    Raises
    ------
    MXNetError
        (also ValueError or TypeError) if `min_freq` is below 1, or reserved words repeat or hold `unknown_token`.

    Examples
    --------
    >>> import collections
    >>> v = Vocabulary(collections.Counter("a b b c c c".split()), min_freq=2, reserved_tokens=["<pad>"])
    >>> v.idx_to_token, v.to_indices(["c", "x"])
    (['<unk>', '<pad>', 'c', 'b'], [2, 0])
    """

    def __init__(
        self,
        counter: Any = None,
        most_freq_count: int | None = None,
        min_freq: int = 1,
        unknown_token: str = "<unk>",
        reserved_tokens: Sequence[str] | None = None,
    ) -> None:
        if min_freq < 1:
            raise asserted(ValueError, f"Vocabulary: min_freq must be 1 or more, got {min_freq!r}")
        if reserved_tokens is not None:
            if len(set(reserved_tokens)) != len(reserved_tokens):
                raise asserted(ValueError, f"Vocabulary: reserved_tokens repeat: {list(reserved_tokens)}")
            if unknown_token in reserved_tokens:
                raise asserted(
                    ValueError, f"Vocabulary: reserved_tokens hold {unknown_token!r}, which is the unknown_token"
                )
        self._unknown_token = unknown_token
        self._reserved_tokens = None if reserved_tokens is None else list(reserved_tokens)
        self._idx_to_token = [unknown_token, *(reserved_tokens or ())]
        if counter is not None:
            if not isinstance(counter, collections.Counter):
                raise asserted(
                    TypeError, f"Vocabulary: counter must be a collections.Counter, got {type(counter).__name__}"
                )
            taken = set(self._idx_to_token)
            rows = sorted(counter.items(), key=lambda row: (-row[1], row[0]))
            new = [token for token, n in rows if n >= min_freq and token not in taken]
            self._idx_to_token += new if most_freq_count is None or most_freq_count < 0 else new[:most_freq_count]
        self._token_to_idx = {t: i for i, t in enumerate(self._idx_to_token)}

    def __len__(self) -> int:
        return len(self._idx_to_token)

    @property
    def token_to_idx(self) -> dict[str, int]:
        """Numbers by word."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[str]:
        """Words by number."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> str:
        """What stands for words that are not there."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[str] | None:
        """The words that were there before any was counted."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> Any:
        """The number of a word, or numbers of a list of words; 0 where there is none."""
        if not isinstance(tokens, (list, tuple)):
            return self._token_to_idx.get(tokens, 0)
        return [self._token_to_idx.get(t, 0) for t in tokens]

    def to_tokens(self, indices: Any) -> Any:
        """The word of a number, or words of a list of numbers.

        Raises
        ------
        MXNetError
            (also ValueError) if a number is none of a word.
        """
        single = not isinstance(indices, (list, tuple))
        found = []
        for i in [indices] if single else indices:
            if not isinstance(i, int) or not 0 <= i < len(self._idx_to_token):
                raise error(
                    ValueError,
                    f"to_tokens: {i!r} is no number of a word; they go from 0 to {len(self._idx_to_token) - 1}",
                )
            found.append(self._idx_to_token[i])
        return found[0] if single else found
