"""Single calls, operators, and what stands before them: the import."""

from __future__ import annotations

import subprocess
import sys
from itertools import repeat

from .. import figures
from . import Workload

LOOPS = 1000


def _add(mx, loops):
    a, b = mx.nd.ones((4, 4)), mx.nd.ones((4, 4))

    def run():
        for _ in repeat(None, loops):
            a + b
        mx.nd.waitall()

    return run


def _add_torch(torch, loops):
    a, b = torch.ones(4, 4), torch.ones(4, 4)

    def run():
        for _ in repeat(None, loops):
            a + b

    return run


def _record(mx, loops):
    x, b, record = mx.nd.ones((4, 4)), mx.nd.ones((4, 4)), mx.autograd.record
    x.attach_grad()

    def run():
        for _ in repeat(None, loops):
            with record():
                y = (x * 2 + b).sum()
            y.backward()
        mx.nd.waitall()

    return run


def _record_torch(torch, loops):
    x, b = torch.ones(4, 4, requires_grad=True), torch.ones(4, 4)

    def run():
        for _ in repeat(None, loops):
            x.grad = None
            (x * 2 + b).sum().backward()

    return run


def _normalization(mx, graph):
    return figures.runner(mx, graph, "eager")


def _normalization_torch(torch, graph):
    norm, softmax = torch.nn.functional.layer_norm, torch.softmax
    x, gamma, beta = (torch.randn(s) for s in ((figures.ROWS, figures.WIDTH), *2 * ((figures.WIDTH,),)))
    return _quietly(torch, lambda: norm(softmax(x, -1), (figures.WIDTH,), gamma, beta))


def _chain(mx, size):
    net = mx.gluon.nn.HybridLambda(lambda F, x: F.tanh(x * x + 1) * F.exp(-x) + F.sigmoid(x))
    net.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.random.uniform(-3, 3, shape=(size,))
    return lambda: net(x).wait_to_read()


def _chain_torch(torch, size):
    x = torch.rand(size) * 6 - 3
    return _quietly(torch, lambda: torch.tanh(x * x + 1) * torch.exp(-x) + torch.sigmoid(x))


def _gemm(mx, n):
    a, b = (mx.nd.random.normal(shape=(n, n)) for _ in range(2))
    return lambda: mx.nd.dot(a, b).wait_to_read()


def _gemm_torch(torch, n):
    a, b = torch.randn(n, n), torch.randn(n, n)
    return _quietly(torch, lambda: a @ b)


def _quietly(torch, run):
    return torch.inference_mode()(run)


def _import(module, more=""):
    """A fresh interpreter that imports the framework, and does something."""
    code = f"import {module.__name__} as m{more}"
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def _first(mx):
    return _import(mx, "; m.nd.ones((2, 2)).asnumpy()")


def _first_torch(torch):
    return _import(torch, "; m.ones(2, 2).numpy()")


WORKLOADS = (
    Workload("eager add 4×4", 1.2, _add, _add_torch, loops=LOOPS),
    Workload("record + backward, 3 operators", 0.7, _record, _record_torch, loops=LOOPS),
    Workload("softmax + LayerNorm", 0.2, _normalization, _normalization_torch, ("softmax + LayerNorm",)),
    Workload("elementwise chain 4 M", 0.15, _chain, _chain_torch, (4_000_000,), (4_000,)),
    Workload("GEMM 1024", 0.97, _gemm, _gemm_torch, (1024,), (64,)),
    Workload("import", 1, _import, _import),
    Workload("import, first array", 1, _first, _first_torch),
)
