"""Roles: what the core needs of operators whose names it does not know. They declare them: ``op(..., role=...)``."""

from __future__ import annotations

from typing import Any

__all__ = ["ROLES", "Roles"]

#: Role -> how an operator that has it is called, and what it gives.
ROLES: dict[str, str] = {
    "sum of gradients": "(a, b), their sum",
    "zero gradient": "(x), zeros like it",
    "unit gradient": "(x), ones like it",
    "new array": "(x), its values in memory of their own",
    "other dtype": "(x, dtype=), its values in that dtype",
    "other storage type": "(x, stype=), its values in that storage type",
    "other context": "(x, source=), recorded where x went from the context `source` to another one",
    "other shape": "(x, shape=), its elements in that shape",
}


class Roles(dict[str, Any]):
    """Role -> function of a frontend (eager or graph) that does it; each is looked up once.

    Parameters
    ----------
    F : object
        Has operators as attributes.
    table : Table
        The operators of roles.
    """

    def __init__(self, F: Any, table: Any) -> None:
        super().__init__()
        self.F, self.table = F, table

    def __missing__(self, role: str) -> Any:
        fn = self[role] = getattr(self.F, self.table.get(role).name)
        return fn
