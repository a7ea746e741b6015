"""What the profiler is to record, and where it writes."""

from __future__ import annotations

from threading import TIMEOUT_MAX
from typing import Any

from .._core.errors import suggest
from .._io_files import checked
from ..base import error

__all__ = ["Config", "config"]

_KINDS = ("symbolic", "imperative", "memory", "api")


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, str):
        value = {"true": True, "1": True, "false": False, "0": False}.get(value.lower(), value)
    if value not in (True, False):
        raise error(ValueError, f"profiler: {name} must be True or False, got {value!r}")
    return bool(value)


class Config:
    """The settings, with MXNet's names."""

    def __init__(self) -> None:
        self.filename = "profile.json"
        self.gpu_memory_profile_filename_prefix = "gpu_memory_profile"
        self.profile_all = False
        self.profile_symbolic = self.profile_imperative = self.profile_memory = self.profile_api = True
        self.continuous_dump = self.aggregate_stats = False
        self.dump_period = 1.0

    def set(self, given: dict[str, Any]) -> None:
        """Change settings; all are checked first."""
        vars(self).update(self.check(given))

    def check(self, given: dict[str, Any]) -> dict[str, Any]:
        """The values that settings would get.

        Raises
        ------
        MXNetError
            (also ValueError) for a setting that there is not, or a wrong value, (also TypeError) for what is no file
            name.
        """
        new: dict[str, Any] = {}
        for name, value in given.items():
            if not hasattr(self, name):
                raise error(
                    ValueError,
                    f"profiler: there is no setting {name!r}{suggest(name, vars(self))}; there are "
                    f"{', '.join(vars(self))}",
                )
            old = getattr(self, name)
            if isinstance(old, bool):
                new[name] = _flag(name, value)
            elif isinstance(old, float):
                try:
                    new[name] = float(value)
                except (TypeError, ValueError):
                    new[name] = 0.0
                if not 0 < new[name] <= TIMEOUT_MAX:
                    raise error(ValueError, f"profiler: {name} must be seconds above 0, got {value!r}")
            else:
                new[name] = checked(value, f"profiler: {name}")
        return new

    def wants(self, kind: str) -> bool:
        """Whether calls of a kind are recorded: 'symbolic', 'imperative', 'memory' or 'api'."""
        assert kind in _KINDS
        return bool(self.profile_all or getattr(self, f"profile_{kind}"))


config = Config()
