"""How fast it is: against the memory's bandwidth, and against PyTorch in the same process, in turn.

A comparison holds if it does by the medians.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import mxcore as mx

from . import Report
from .plugin import cudnn, gpu, torch
from .timing import Times, bandwidth, in_turn

__all__ = ["compared", "convolution", "freely", "launch", "matrices", "memory", "step"]


#: Of a ResNet-50: channels, filters, length of an image's side, of the kernel's, stride.
LAYERS = [(64, 64, 56, 3, 1), (256, 64, 56, 1, 1), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1), (256, 512, 14, 3, 2)]


def memory(report: Report) -> None:
    """Bytes that are read and written, per second."""
    ctx, quick = gpu(), report.emulate
    n = 2**14 if quick else 2**28
    x, y = (mx.nd.random.uniform(shape=(n,), ctx=ctx) for _ in range(2))
    target = mx.nd.zeros((n,), ctx=ctx)
    net = mx.gluon.nn.HybridLambda(lambda F, a, b: F.tanh(a * 2 + b) * a)
    net.hybridize()
    optimizer = mx.optimizer.Adam()
    count, size = (4, 2**8) if quick else (100, 2**20)
    weights, grads = ([mx.nd.ones((size,), ctx=ctx) for _ in range(count)] for _ in range(2))
    updater, keys = mx.optimizer.get_updater(optimizer), list(range(count))
    ways = [
        # what, arrays of how many bytes are read and written, wanted, of what
        ("copy", 2 * 4 * n, 0.9, lambda: x.copyto(target)),
        ("sum", 4 * n, 0.8, x.sum),
        ("fused chain of 4 operators", 3 * 4 * n, 0.8, lambda: net(x, y)),
        ("Adam of 100 weights", 7 * 4 * size * count, 0.8, lambda: updater(keys, grads, weights)),
    ]
    calls, their = [(call, mx.nd.waitall) for *_, call in ways], torch()
    if their is not None:
        a = their.rand(n, device="cuda")
        b = their.empty_like(a)
        calls.append((lambda: b.copy_(a), their.cuda.synchronize))
    times = in_turn(*calls, quick=quick)
    peak = 1e12 if quick else bandwidth()
    if not peak:
        report.tell(
            "bandwidth", "skipped", note="the driver does not tell clock and width; a copy's counts as 0.9 of it"
        )
        peak = ways[0][1] / times[0].median / 0.9
    if their is not None:
        rate = ways[0][1] / times[-1].median
        report.tell("PyTorch's copy", figure=f"{rate / peak:.3g} of the bandwidth", note=f"{rate / 1e9:.0f} GB/s")
        most = times[-1].median / times[0].median
        report.measured("copy", most, "x PyTorch's speed", ">= 0.95", most >= 0.95)
    for (what, size_, wanted, _), t in zip(ways, times):
        rate = size_ / t.median
        note = f"{rate / 1e9:.0f} of {peak / 1e9:.0f} GB/s; {t}"
        report.measured(what, rate / peak, "of the bandwidth", f">= {wanted}", rate / peak >= wanted, note)


def compared(
    report: Report, what: str, ours: Callable[[], Any], theirs: Callable[[], Any] | None, wanted: float
) -> None:
    """The speed of ours by that of PyTorch, which is at least `wanted`."""
    calls = [(ours, mx.nd.waitall)] + ([(theirs, torch().cuda.synchronize)] if theirs is not None else [])
    times = in_turn(*calls, quick=report.emulate)
    _ratio(report, what, times[0], times[1] if theirs is not None else None, wanted)


def _ratio(report: Report, what: str, a: Times, b: Times | None, wanted: float, note: str = "") -> None:
    """How fast ours is by PyTorch's time, where there is one."""
    if b is None:
        verdict = "rehearsed" if report.emulate else "skipped"
        report.tell(what, verdict, note=f"no PyTorch to compare with; ours {a}{note}")
        return
    ratio = b.median / a.median
    note = f"ours {a}; PyTorch {b}; {b.best / a.best:.2f} by the best{note}"
    report.measured(what, ratio, "x PyTorch's speed", f">= {wanted:g}", ratio >= wanted, note)


def matrices(report: Report) -> None:
    """Square products."""
    n, their = 64 if report.emulate else 4096, torch()
    for dtype in ("float32", "float16"):
        a, b = (mx.nd.random.uniform(shape=(n, n), ctx=gpu()).astype(dtype) for _ in range(2))
        theirs = None
        if their is not None:
            x, y = (their.rand(n, n, device="cuda", dtype=getattr(their, dtype)) for _ in range(2))
            theirs = lambda x=x, y=y: x @ y  # noqa: E731
        compared(report, f"{n} x {n} {dtype}", lambda a=a, b=b: mx.nd.dot(a, b), theirs, 0.95)


def convolution(report: Report) -> None:
    """Layers of a ResNet-50 with both gradients, by our own kernels and by cuDNN."""
    their, dnn = torch(), cudnn(report.emulate)
    shrink = 4 if report.emulate else 1
    providers = {"own": (True, 0.5), **({"cuDNN": (False, 0.95)} if dnn is not None else {})}
    if dnn is None:
        report.tell("cuDNN", "skipped", note="it is not there")
    # Of float16 more, so that the GPU takes longer than the host.
    for dtype, images in (("float32", 32), ("float16", 128)):
        images = 1 if report.emulate else images
        for channels, filters, size, kernel, stride in [(8, 8, 56, 3, 1)] if report.emulate else LAYERS:
            side, pad = size // shrink, kernel // 2
            shape = images, channels, side, side
            ours = [_our_convolution(shape, filters, kernel, stride, pad, dtype, off) for off, _ in providers.values()]
            calls = [(call, mx.nd.waitall) for call in ours]
            if their is not None:
                theirs = _their_convolution(their, shape, filters, kernel, stride, pad, dtype)
                calls.append((theirs, their.cuda.synchronize))
            times = in_turn(*calls, quick=report.emulate)
            what = f"{images} x {channels} x {side} x {side} by {filters} of {kernel} x {kernel} / {stride}, {dtype}"
            ways = [] if dnn is None else [(k, a) for k, c, d, a, _ in dnn.chosen() if (d, c.x) == (dtype, shape)]
            for (name, (off, wanted)), t in zip(providers.items(), times):
                note = "" if off else f"; {', '.join(f'{k}: {a}' for k, a in ways[-3:])}"
                _ratio(report, f"{what}, {name}", t, times[-1] if their is not None else None, wanted, note)


def freely(report: Report) -> None:
    """The same by cuDNN, where results need not be the same at every run: PyTorch's ways need not be, either."""
    os.environ["MXNET_ENFORCE_DETERMINISM"] = "0"
    convolution(report)


def _our_convolution(
    shape: tuple[int, ...], filters: int, kernel: int, stride: int, pad: int, dtype: str, own: bool
) -> Callable[[], None]:
    x = mx.nd.random.uniform(shape=shape, ctx=gpu()).astype(dtype)
    w = mx.nd.random.uniform(-0.1, 0.1, shape=(filters, shape[1], kernel, kernel), ctx=gpu()).astype(dtype)
    x.attach_grad()
    w.attach_grad()
    places = {"kernel": (kernel,) * 2, "stride": (stride,) * 2, "pad": (pad,) * 2}
    how = {**places, "num_filter": filters, "no_bias": True, "cudnn_off": own}
    head = mx.nd.Convolution(x, w, **how).ones_like()

    def run() -> None:
        with mx.autograd.record():
            y = mx.nd.Convolution(x, w, **how)
        y.backward(head)

    return run


def _their_convolution(
    their: Any, shape: tuple[int, ...], filters: int, kernel: int, stride: int, pad: int, dtype: str
) -> Callable[[], None]:
    layer = their.nn.Conv2d(shape[1], filters, kernel, stride, pad, bias=False).cuda().to(getattr(their, dtype))
    x = their.rand(*shape, device="cuda", dtype=getattr(their, dtype), requires_grad=True)
    head = their.ones_like(layer(x))
    return lambda: layer(x).backward(head)


def step(report: Report) -> None:
    """A training step of LeNet on 64 digits: hybridised here, eager there."""
    nn, ctx, their = mx.gluon.nn, gpu(), torch()
    net = nn.HybridSequential()
    net.add(nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(50, 5, activation="tanh"))
    net.add(nn.MaxPool2D(2, 2), nn.Flatten(), nn.Dense(500, activation="tanh"), nn.Dense(10))
    net.initialize(ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    loss.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    images = 2 if report.emulate else 64
    x, label = mx.nd.random.uniform(shape=(images, 1, 28, 28), ctx=ctx), mx.nd.zeros((images,), ctx=ctx)

    def ours() -> None:
        with mx.autograd.record():
            found = loss(net(x), label)
        found.backward()
        trainer.step(images)

    compared(report, "LeNet's step", ours, None if their is None else _their_step(their, images), 2)


def _their_step(their: Any, images: int) -> Callable[[], None]:
    nn = their.nn
    net = nn.Sequential(
        *(nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10)),
    ).cuda()
    optimizer = their.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    loss = nn.CrossEntropyLoss()
    x = their.rand(images, 1, 28, 28, device="cuda")
    label = their.zeros(images, dtype=their.long, device="cuda")

    def run() -> None:
        optimizer.zero_grad()
        loss(net(x), label).backward()
        optimizer.step()

    return run


def launch(report: Report) -> None:
    """The host's time for an operator on a few numbers, while the GPU keeps up."""
    a, b = (mx.nd.ones((8,), ctx=gpu()) for _ in range(2))
    (t,) = in_turn((lambda: a + b, mx.nd.waitall), quick=report.emulate)
    report.measured("a + b", t.median * 1e6, "us", "<= 12", t.median <= 12e-6, str(t))
