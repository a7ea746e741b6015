"""What each graph pass and each plugin's kernels contribute: the model without them, in turns with it as it is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from ..._core import tables
from ..._core.errors import REFERENCE, caught, in_a_line
from ...executor import passes_off
from ...executor.costs import COMPILED, costs, program_of
from ...executor.passes.settings import STOCK
from ...rewriting import switched_off
from ...testing.ways import without_kernels_of
from . import timing

if TYPE_CHECKING:
    from ...executor import Executor
    from .subject import Subject

__all__ = ["measure"]

_ORDER = "MXCORE_KERNEL_ORDER"
#: Rounds at most.
MOST = 15


@contextlib.contextmanager
def _first(owner: str) -> Iterator[None]:
    """A plugin's kernels go first where priorities are equal."""
    before = os.environ.get(_ORDER)
    os.environ[_ORDER] = owner
    tables.changed()
    try:
        yield
    finally:
        os.environ.pop(_ORDER) if before is None else os.environ.update({_ORDER: before})
        tables.changed()


def _owners(model: Subject, bound: Executor) -> list[str]:
    """Whose kernels run in each step; the reference bodies are nobody's."""
    return [c.owner for c in costs(program_of(bound, model.train))]


def measure(model: Subject, bound: Executor, repeat: int, computed: Collection[str]) -> list[dict[str, Any]]:
    """What is changed, how (the variable that does it), and the time by that of the model as it is.

    Parameters
    ----------
    model : Subject
    bound : Executor
        As it is.
    repeat : int
        Rounds, 15 at most.
    computed : collection of str
        Who computed its steps, several of them behind commas.
    """
    chosen = _owners(model, bound)
    passes = [
        *STOCK,
        *(n for n, brought in tables.by_kind["graph_pass"].entries().items() if brought.order is not None),
    ]
    found = [
        _against(model, bound, repeat, f"without pass {name}", f"MXCORE_DISABLE_PASSES={name}", passes_off(name))
        for name in passes
        if name not in switched_off() and (name != "mirror" or model.train)
    ]
    owners = sorted({*chosen, *", ".join(computed).split(", ")} - {REFERENCE, COMPILED, ""})
    for owner in owners:
        brings = tables.devices.owners[model.ctx.device_type] == owner
        how = "(by itself: it brings the device, too)" if brings else f"MXCORE_DISABLE_PLUGINS={owner}"
        what = f"without kernels of {owner}"
        found.append(_against(model, bound, repeat, what, how, without_kernels_of(owner)))
    others = {k.owner for table in tables.kernels.sets.get(model.ctx.device_type, {}).values() for k in table}
    for owner in sorted(others) if len(others) > 1 else ():
        with _first(owner):
            same = _owners(model, model.bind()) == chosen
        if not same:
            what = f"kernels of {owner} first"
            found.append(_against(model, bound, repeat, what, f"{_ORDER}={owner}", _first(owner)))
    return found


def _against(
    model: Subject, bound: Executor, repeat: int, what: str, how: str, change: contextlib.AbstractContextManager[Any]
) -> dict[str, Any]:
    row: dict[str, Any] = {"what": what, "how": how}
    try:
        with change:
            other = model.runner(model.bind())
            took = timing.warm(other)
    except Exception as e:  # a kernel may be the only thing that computes an operator
        return row | {"failed": in_a_line(caught(e))}
    same = model.runner(bound)
    rounds = 1 if took > timing.SLOW else min(repeat, MOST)
    timing.warm(same)
    times: dict[Callable[[], None], list[float]] = {same: [], other: []}
    for _ in range(rounds):
        for run, taken in times.items():
            taken += [timing.timed(run)]
    return row | {"seconds": min(times[other]), "ratio": min(times[other]) / min(times[same])}
