"""What arrays ask while a block runs on them so that its graph is noted; see :mod:`.gluon.block.deferred`."""

from __future__ import annotations

from typing import Any

from ._core.errors import error
from ._core.state import state

__all__ = ["check_not_noted", "check_readable", "noted", "refused"]


def noted(x: Any) -> Any:
    """Who notes a graph in the place of the tape, if that is done now and it may know an array; else None."""
    return state.record if x._entry is not None and callable(state.record) else None


def check_readable(x: Any) -> None:
    """Refuse to tell Python the values of an array that only a run of the graph has."""
    if noted(x):
        state.record.refuse_reading(x)


def check_not_noted(what: str) -> None:
    """Refuse what a graph that is noted on arrays cannot hold."""
    if callable(state.record):
        raise refused(what)


def refused(what: str) -> Exception:
    """The error for what a graph that is noted on arrays cannot hold."""
    return error(
        NotImplementedError,
        f"{what} while the forward of a hybridized block is noted as a graph, which would hold what came of this one "
        "call; compute it by operators (np.where …), or leave the block unhybridized",
    )
