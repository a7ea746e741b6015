"""What the tests of graph passes share: networks trained by an executor, and the steps of their programs."""

import numpy as np

import mxcore as mx


def arrays_of(symbol, seed=0, **given):
    """Arguments and auxiliary states by name."""
    args, _, aux = symbol.infer_shape(**given)
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in [*zip(symbol.list_arguments(), args), *zip(symbol.list_auxiliary_states(), aux)]:
        a = rng.standard_normal(shape) * (0.5 if len(shape) > 1 else 1)
        found[name] = mx.nd.array(np.abs(a) + 0.3 if name.endswith("var") else a)
    return found


def trained(symbol, arrays, req="write", steps=1, seed=3):
    """Outputs, gradients and auxiliary states, and the executor."""
    args = {n: arrays[n].copy() for n in symbol.list_arguments()}
    aux = {n: arrays[n].copy() for n in symbol.list_auxiliary_states()}
    reqs = req if isinstance(req, dict) else dict.fromkeys(args, req)
    grads = {n: mx.nd.ones(a.shape) for n, a in args.items() if reqs[n] != "null"}
    executor = symbol.bind(mx.cpu(), args, grads, reqs, aux)
    for _ in range(steps):
        outs = executor.forward(is_train=True)
        rng = np.random.default_rng(seed)
        executor.backward([mx.nd.array(rng.standard_normal(o.shape)) for o in outs])
    values = [*outs, *grads.values(), *aux.values()]
    return [a.asnumpy() for a in values], executor


def steps(executor):
    """The names of the operators of the program that trains."""
    program = executor._instance(True, True)[0].program
    return [step.op.name for step in program.steps if step.head < 0]
