"""All workloads, in the order of the table."""

from __future__ import annotations

from . import files, small, steps, vision

WORKLOADS = {w.name: w for family in (small, steps, vision, files) for w in family.WORKLOADS}
