"""Kernels that users write (``mx.rtc``): compiled for a device, launched with arguments of any dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .drivers import driver
from .launching import Arguments
from .user_sources import UserCode

__all__ = ["compiled"]


def compiled(text: str, options: Sequence[str], exports: Sequence[str], index: int) -> Callable[..., Any]:
    """Compile a source for a device; returns what finds its kernels, as `Device.compile_source` has it."""
    code, d = UserCode(text, options, exports), driver()
    d.prepare(code, index)

    def find(name: str, arguments: Sequence[tuple[Any, bool]]) -> Callable[..., None]:
        code.declare(name, arguments)
        function = d.function(code, name, index)
        slots = ["Q" if array else f"{t.itemsize}s{8 - t.itemsize}x" for t, array in arguments]

        def launch(grid: Sequence[int], block: Sequence[int], shared: int, values: Sequence[Any]) -> None:
            packed = Arguments(slots)
            packed.set(*[d.address(v) if array else v.tobytes() for v, (_, array) in zip(values, arguments)])
            d.launch(function, grid, block, shared, d.stream(index), packed)

        return launch

    return find
