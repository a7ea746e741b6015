"""The plans that there are: one for each operator, its shapes and number of threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from mxcore.plugin import hold_at_fork

from .library import Library, NoMemory, Refused, library
from .plan import Plan
from .teams import Threads, workers

__all__ = ["plan_for"]

_LIMIT = 512
_plans: OrderedDict[Any, Plan | Refused] = OrderedDict()
#: Of the dictionary; and of who makes a plan, which takes long for many layers. A signal handler may come in between.
_lock, _making = threading.RLock(), threading.RLock()
# Nobody makes a plan while the process is forked: the library's own locks are free in the child. The last comes first.
hold_at_fork(_lock)
hold_at_fork(_making)


def plan_for(
    key: tuple[Any, ...], make: Callable[[Library], Plan], work: float, refused: list[Refused] | None = None
) -> Plan | None:
    """The plan of an operator and its shapes, made once for each number of threads; None if the library refuses it.

    Where there is no memory it is tried again at the next call.

    Parameters
    ----------
    key : tuple
        Operator, shapes, parameters.
    make : callable
        ``(library) -> Plan``, which may raise `Refused`.
    work : float
        Multiplications: a little is done by one thread.
    refused : list, optional
        Gets what `make` has raised.
    """
    key = (workers(work), *key)
    found = _known(key)
    lib = library() if found is None else None
    if lib is not None:
        with _making:
            found = _known(key)
            if found is None:
                try:
                    with Threads(lib, key[0]):
                        found = make(lib)
                except NoMemory:
                    return None
                except Refused as e:
                    found = e.with_traceback(None)  # which holds what was made so far
                with _lock:
                    _plans[key] = found
                    if len(_plans) > _LIMIT:
                        _plans.popitem(last=False)
    if isinstance(found, Refused) and refused is not None:
        refused.append(found)
    return found if isinstance(found, Plan) else None


def _known(key: Any) -> Plan | Refused | None:
    with _lock:
        if key not in _plans:
            return None
        _plans.move_to_end(key)
        return _plans[key]
