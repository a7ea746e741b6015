"""Which of the names that a file has in excess are likely those that it lacks."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence

__all__ = ["likely_pairs"]

#: More names than these are not compared one by one.
_MOST = 200


def likely_pairs(missing: Sequence[str], extra: Sequence[str], shown: int = 10) -> str:
    """A hint for a message about names that do not match.

    Parameters
    ----------
    missing : sequence of str
        What was looked for.
    extra : sequence of str
        What was there instead.
    shown : int, default 10
        How many pairs to name.

    Returns
    -------
    str
        Lines to append, '' if nothing is similar.

    Examples
    --------
    >>> print(likely_pairs(['a_weight', 'a_bias'], ['b_weight', 'b_bias']))
    <BLANKLINE>
    The names agree but for how they begin: 'a_' is wanted, 'b_' is there.
    >>> print(likely_pairs(['fc_weight'], ['fc_weights', 'step']))
    <BLANKLINE>
    Similar names: 'fc_weight' is wanted, 'fc_weights' is there.
    """
    if not missing or not extra:
        return ""
    wanted, there = _start(missing), _start(extra)
    if {n[len(wanted) :] for n in missing} == {n[len(there) :] for n in extra}:
        return f"\nThe names agree but for how they begin: {wanted!r} is wanted, {there!r} is there."
    pairs, left = [], list(extra)[:_MOST]
    for name in list(missing)[:_MOST]:
        found = difflib.get_close_matches(name, left, 1, 0.75)
        if found:
            left.remove(found[0])
            pairs.append(f"{name!r} is wanted, {found[0]!r} is there")
    if not pairs:
        return ""
    more = f"; {len(pairs) - shown} more" if len(pairs) > shown else ""
    return f"\nSimilar names: {'; '.join(pairs[:shown])}{more}."


def _start(names: Sequence[str]) -> str:
    """What all names begin with, cut so that something is left of each and no word is split."""
    start = os.path.commonprefix(list(names))
    cut = max(start.rfind("_"), start.rfind(".")) + 1
    return start[:cut]
