"""Drafts: files that are written aside and take their place whole, or not at all.

The one mechanism behind every writer of the library and its plugins. Locally a draft is a file beside its target; it is
locked while its writer lives, and reaches the disk (fsync) before it is renamed over the target. A writer that is
killed leaves the old file as it was, and a draft that nobody holds, which the next writer of that file removes, and
after an hour the next writer of any file of the folder.

Files that belong together, such as records and their index, or arrays, their graph and the states of their optimizer,
are completed by :func:`commit`, or :func:`together` where several writers make them. Between the renames the others
wait under names that are made of what the first now is, so that :func:`settle` can finish what a killed writer had
begun.
"""

from .draft import Draft, commit
from .pairs import read_pair, settle
from .writers import atomic_writer, atomic_writers, together

__all__ = ["Draft", "atomic_writer", "atomic_writers", "commit", "read_pair", "settle", "together"]
