"""Loops, functions of one's own, and gradients that stop."""

import mxnet as mx, numpy as np
from mxnet import nd, autograd

out, st = nd.contrib.foreach(
    lambda x, s: (x * s[0] + s[1], [s[0] + 1, s[1]]), nd.arange(6).reshape((3, 2)), [nd.ones(2), nd.array([2, 3])]
)
print(out, st)
o, s = nd.contrib.while_loop(
    lambda i, a: i < 4, lambda i, a: (a * i, (i + 1, a + i)), (nd.array([0]), nd.array([1])), max_iterations=4
)
print(o, s)
print(nd.contrib.cond(nd.array([1]) > 2, lambda: nd.ones(2), lambda: nd.zeros(2)))


class F(autograd.Function):
    def forward(s, x, y):
        s.save_for_backward(x, y)
        return x * y

    def backward(s, dz):
        x, y = s.saved_tensors
        return dz * y, dz * x * 10


a, b = nd.array([1, 2]), nd.array([3, 4])
a.attach_grad()
b.attach_grad()
for _ in range(2):
    with autograd.record():
        z = F()(a, b) * 2
    z.backward()
print(a.grad, b.grad)
x = nd.array([1.0, 2, 3])
x.attach_grad()
with autograd.record():
    y = nd.BlockGrad(x * 2) + x
    w = (x * 3).detach() * x
    with autograd.pause():
        q = x * 5
    print(autograd.is_recording(), autograd.is_training())
autograd.backward([y, w], [nd.ones(3), nd.ones(3) * 2])
print(x.grad)
with autograd.record(train_mode=False):
    d = nd.Dropout(x, p=0.5)
print(d)
with autograd.train_mode():
    print(nd.Dropout(x, p=0.0))
s = mx.sym.contrib.foreach(lambda x, s: (x + s, x + s), mx.sym.var("d"), mx.sym.var("i"))
g = mx.sym.Group([s[0], s[1]])
print(g.list_arguments(), g.infer_shape(d=(3, 2), i=(2,))[1])
