"""Benchmarks of operators on their samples: every kernel on every device beside the reference body.

    pytest --benchmark                     in a plugin's folder: what the plugins in that folder bring, which for a
                                           device is every operator on it
    pytest --benchmark --ops='my_*'        these operators
    pytest --benchmark --device='gpu(1)'   on this device only

A line of the table is an operator on a device by a kernel, on the largest of its samples that the kernel takes, which
the line shows. The ratio is to the reference body on the same device, and that of a body on another device than the CPU
to what the CPU chooses, which is named. What is measured is the function alone, over arrays that are on the device
already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .._core import tables
from .._core.call import OpContext
from .._core.context import Context
from .._core.errors import REFERENCE
from .._core.kernels import Kernel, Spec
from .._core.manager import manager
from .._core.op import Op
from .case import Case, cases
from .conformance import operators
from .measure import backends
from .options import given

__all__ = ["brought_by", "uses"]

#: Seconds that a round should take at least, and how many rounds there are.
ROUND, ROUNDS = 2e-3, 10
#: What the table calls the function that every operator has.
BODY = "reference body"


def brought_by(folder: Path) -> set[str]:
    """The plugins whose modules lie in a folder: those that a run there is about.

    Parameters
    ----------
    folder : Path
    """
    manager.load()
    files = {name: getattr(manager.pm.get_plugin(name), "__file__", None) for name in manager.origin}
    return {name for name, file in files.items() if file and folder.resolve() in Path(file).resolve().parents}


def uses(ops: str | None, device: str | None, owners: set[str]) -> Iterator[tuple[Op, Context, Kernel | None]]:
    """(operator, context, kernel or None for the reference body) of all that is to be measured, the owners' first.

    Parameters
    ----------
    ops : str or None
        Patterns of operators; None: those that the owners bring or have kernels for, all of them on devices that they
        bring.
    device : str or None
        Where; None: on every device that is present.
    owners : set of str
        Plugins; none: everything that there is.
    """
    for op in sorted(operators(ops or "*"), key=lambda op: tables.ops.owners[op.name] not in owners):
        for ctx in backends((), device):
            if op.stateful:  # these run programs and users' code
                continue
            found = tables.kernels.of(ctx.device_type, op)
            if not ops and op.twin_when:  # what it shares with another one is measured there
                found = [k for k in found if k.op in (op.name, *op.aliases)]
                if not found:
                    continue
            concerned = {tables.ops.owners[op.name], tables.devices.owners[ctx.device_type], *(k.owner for k in found)}
            if ops or not owners or concerned & owners:
                yield from (
                    (op, ctx, k)
                    for k in (*found, *([None] if op.body is not None and ctx.device.xp is not None else []))
                )


def pytest_generate_tests(metafunc: Any) -> None:
    """One benchmark for each operator, device and kernel."""
    config = metafunc.config
    if not config.pluginmanager.hasplugin("mxcore.testing.measure"):
        metafunc.parametrize("use", [pytest.param(None, marks=pytest.mark.skip(reason="pytest --benchmark runs it"))])
        return
    found = [*uses(given(config, "--ops"), given(config, "--device"), brought_by(config.rootpath))]
    metafunc.parametrize("use", found, ids=[f"{op.name}-{ctx}-{k.owner if k else REFERENCE}" for op, ctx, k in found])


@pytest.fixture
def backend(use: tuple[Op, Context, Kernel | None]) -> Context:
    """The context of the benchmark at hand."""
    return use[1]


def _fits(case: Case, kernel: Kernel | None) -> bool:
    specs = [Spec(a.shape, a.dtype) for a in case.host]
    return kernel is None or kernel in tables.kernels.fitting(case.op, case.device, case.p, specs)


def _runner(case: Case, kernel: Kernel | None) -> Callable[[], Any]:
    """A call of a kernel, or of the body, over arrays of its own."""
    ctx, device = case.ctx, case.device
    k = OpContext(ctx, case.sample.train, None, (7, 0, 0) if case.op.random else None)
    datas = [device.from_host(a, ctx.device_id) for a in case.host]
    p, body = case.p, case.op.body
    if kernel is None:
        return lambda: body(k, p, *datas)  # type: ignore[misc]
    fn = kernel.fn
    if not kernel.out:
        return lambda: fn(k, p, *datas)
    shapes, dtypes = case.declared()
    outs = [device.empty(s, t, ctx.device_id) for s, t in zip(shapes, dtypes)] + [datas[i] for i in case.sig.mutates]
    return lambda: fn(k, p, outs, *datas)


def _called(kernel: Kernel | None) -> str:
    return f"of {kernel.owner}, priority {kernel.priority}" if kernel else BODY


def _chosen(case: Case) -> Kernel | None:
    """The kernel that a device takes."""
    return next((k for k in tables.kernels.of(case.device.type, case.op) if _fits(case, k)), None)


def _number(run: Callable[[], Any], finish: Callable[[], None]) -> int:
    """How many calls make a round."""
    run()  # compiles
    finish()
    start = time.perf_counter()
    run()
    finish()
    return max(1, min(200, int(ROUND / max(time.perf_counter() - start, 1e-7))))


def test_operator(use: tuple[Op, Context, Kernel | None], compare: Any, finish: Any) -> None:
    """One operator on one device by one kernel."""
    op, ctx, kernel = use
    fitting = [c for c in cases(op, ctx) if _fits(c, kernel)]
    if not fitting:
        pytest.skip(f"operator {op.name} has no sample that {kernel or 'it'} takes")
    case = max(fitting, key=lambda c: sum(a.size for a in c.host))
    against, reference = "", None
    if kernel is not None and op.body is not None and ctx.device.xp is not None:
        against, reference = BODY, _runner(case, None)
    elif kernel is None and ctx.device_type != "cpu" and "cpu" in tables.devices.names():
        there = Case(op, case.sample, case.dtype, Context("cpu"))
        chosen = _chosen(there)
        against, reference = f"cpu, {'kernel ' if chosen else ''}{_called(chosen)}", _runner(there, chosen)
    with ctx, np.errstate(all="ignore"):
        ours = _runner(case, kernel)
        shapes = " ".join("x".join(map(str, a.shape)) or "()" for a in case.host)
        number = _number(ours, finish)
        compare(
            f"{op.name}, {shapes} {case.dtype}",
            ours,
            reference,
            number=number,
            rounds=ROUNDS,
            against=against,
            kernel=_called(kernel),
        )
