"""How many threads the library may take in the calling thread."""

from __future__ import annotations

from mxcore.plugin import at_fork

from .library import Library, threads

__all__ = ["Threads", "alone", "workers"]

#: Less work than this is done before another thread has heard of it.
_LITTLE = 1 << 18
_alone = False  # in a forked child, where the library's threads are not


def _in_child() -> None:
    global _alone
    _alone = True


at_fork(after_in_child=_in_child)


def alone() -> bool:
    """Whether this is a forked child, where the library's threads are not."""
    return _alone


def workers(work: float = _LITTLE) -> int:
    """How many threads the library may use in the calling thread for so many multiplications."""
    return 1 if _alone or work < _LITTLE else threads().count()


class Threads:
    """``with Threads(lib, n)``: OpenMP takes so many threads for what the calling thread starts."""

    __slots__ = ("lib", "n", "before")

    def __init__(self, lib: Library, n: int) -> None:
        self.lib, self.n = lib, n

    def __enter__(self) -> None:
        self.before = self.lib.openmp.omp_get_max_threads()
        if self.before != self.n:
            try:
                self.lib.openmp.omp_set_num_threads(self.n)
            except BaseException:  # an interrupt behind it
                self.__exit__()
                raise

    def __exit__(self, *exc: object) -> None:
        if self.before != self.n:
            self.lib.openmp.omp_set_num_threads(self.before)
