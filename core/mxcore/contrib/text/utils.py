"""Counting words."""

from __future__ import annotations

import collections
import re

__all__ = ["count_tokens_from_str"]


def count_tokens_from_str(
    source_str: str,
    token_delim: str = " ",
    seq_delim: str = "\n",
    to_lower: bool = False,
    counter_to_update: collections.Counter[str] | None = None,
) -> collections.Counter[str]:
    """Count the words of a text.

    Parameters
    ----------
    source_str : str
    token_delim, seq_delim : str
        Regular expressions between words and between sequences.
    to_lower : bool
        Count all words in small letters.
    counter_to_update : collections.Counter, optional
        Count on in this one.

    Returns
    -------
    collections.Counter

    Examples
    --------
    >>> sorted(count_tokens_from_str("a b\\nb").items())
    [('a', 1), ('b', 2)]
    """
    text = source_str.lower() if to_lower else source_str
    counter = collections.Counter() if counter_to_update is None else counter_to_update
    counter.update(filter(None, re.split(f"{token_delim}|{seq_delim}", text)))
    return counter
