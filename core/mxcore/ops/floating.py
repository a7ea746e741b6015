"""The dtype rule of operators that make no sense over whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["floating"]


def floating(rule: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The given two-way dtype rule (all alike unless told), for floating point data only.

    Raises
    ------
    TypeError
        From the rule: if the first input is of whole numbers.
    """

    def checked(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        t = next((t for t in (ins[0], outs[0], *ins) if t is not None), None)
        if t is not None and t.kind in "biu":
            raise TypeError(f"{t.name} numbers are whole; the operator works on float16, float32 and float64")
        return rule(p, ins, outs) if rule else ([t] * len(ins), [t] * len(outs))

    return checked
