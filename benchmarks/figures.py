"""Graphs of the figures of single operators, written so that MXNet and mxcore run the same lines.

Run by an interpreter that has MXNet, it is MXNet's side of the comparison.
"""

from __future__ import annotations

from .peer import serve

ROWS, WIDTH = 8192, 1024

#: Name -> the graph over F, which is `mx.nd` or `mx.sym`
GRAPHS = {
    "softmax": lambda F, x, gamma, beta: F.softmax(x),
    "LayerNorm": lambda F, x, gamma, beta: F.LayerNorm(x, gamma, beta),
    "softmax + LayerNorm": lambda F, x, gamma, beta: F.LayerNorm(F.softmax(x), gamma, beta),
}
WAYS = ("eager", "eager with backward", "bound", "bound with backward")


def runner(mx, graph, way):
    """A function that runs a graph in one way, waits, and returns the output or the gradient of the data."""
    mx.random.seed(0)
    arrays = [mx.nd.random.normal(shape=s) for s in ((ROWS, WIDTH), (WIDTH,), (WIDTH,))]
    head = mx.nd.random.normal(shape=(ROWS, WIDTH))
    build, back = GRAPHS[graph], way.endswith("backward")
    if way.startswith("bound"):
        return _bound(mx, build, arrays, head, back)

    def forward():
        out = build(mx.nd, *arrays)
        out.wait_to_read()
        return out

    def both():
        with mx.autograd.record():
            out = build(mx.nd, *arrays)
        out.backward(head)
        for a in arrays:
            a.grad.wait_to_read()
        return arrays[0].grad

    if back:
        for a in arrays:
            a.attach_grad()
    return both if back else forward


def _bound(mx, build, arrays, head, back):
    symbol = build(mx.sym, *map(mx.sym.var, ("x", "gamma", "beta")))
    given = {n: a for n, a in zip(("x", "gamma", "beta"), arrays) if n in symbol.list_arguments()}
    grads = {n: mx.nd.zeros(a.shape) for n, a in given.items()} if back else None
    executor = symbol.bind(mx.current_context(), given, args_grad=grads, grad_req="write" if back else "null")

    def run():
        outs = executor.forward(is_train=back)
        if not back:
            outs[0].wait_to_read()
            return outs[0]
        executor.backward([head])
        for g in grads.values():
            g.wait_to_read()
        return grads["x"]

    return run


if __name__ == "__main__":
    import mxnet

    serve(lambda graph, way: runner(mxnet, graph, way))
