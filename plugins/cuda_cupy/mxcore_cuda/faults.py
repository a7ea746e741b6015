"""What the driver's errors mean to users: no memory left, and failures after which a GPU is lost to the process."""

from __future__ import annotations

from mxcore.plugin import MXNetError, error

__all__ = ["Faults", "no_room"]

#: Status of the driver -> what happened, where nothing can be computed in the process from then on.
_LOST = {
    214: "an error of the memory that cannot be corrected",
    220: "an error of NVLink that cannot be corrected",
    700: "a kernel read or wrote memory that it must not",
    702: "a kernel took too long",
    709: "the context of the process is gone",
    710: "an assertion of a kernel failed",
    714: "a kernel ran out of its stack",
    715: "a kernel has an illegal instruction",
    716: "a kernel read or wrote at an address that is not aligned",
    717: "a kernel read or wrote at an address of another kind of memory",
    718: "a kernel jumped nowhere",
    719: "a kernel failed",
}


def no_room(size: int | None, index: int, memory: tuple[int, int], what: str = "") -> MXNetError:
    """The error where a GPU has no room for so many bytes, though all that was held in reserve was given back."""
    free, total = memory
    return error(
        MemoryError,
        f"gpu({index}) has no room for {'what is asked for' if size is None else f'{size} bytes'}{what}: "
        f"{free} of {total} bytes are free; smaller batches need less",
    )


class Faults:
    """What has failed so that the process must end.

    Attributes
    ----------
    lost : str or None
        What happened.
    refusal : str or None
        What every call says from then on.
    """

    def __init__(self) -> None:
        self.lost: str | None = None
        self.refusal: str | None = None

    def check(self) -> None:
        """Refuse to go on where a GPU is lost, or another process's."""
        if self.refusal is not None:
            raise error(RuntimeError, self.refusal)

    def forked(self) -> None:
        """This process was forked from one that has used a GPU."""
        self.refusal = self.refusal or (
            "a GPU cannot be used in a process forked after its first use: fork before it, or start workers by "
            "'spawn' (multiprocessing.set_start_method)"
        )

    def told(self, status: int, said: str) -> MXNetError | None:
        """The error for a status of the driver; None if the GPU can be used on."""
        if status not in _LOST:
            return None
        if self.lost is None:
            self.lost = f"{_LOST[status]} ({said})"
            self.refusal = f"the GPU cannot be used any more, since {self.lost}; start this process again"
            return error(
                RuntimeError,
                f"{self.lost}. It shows here, but an operator that was launched earlier may have done it: with "
                "MXNET_ENGINE_TYPE=NaiveEngine the error names the one. The GPU cannot be used by this process any "
                "more; start it again",
            )
        return error(RuntimeError, str(self.refusal))
