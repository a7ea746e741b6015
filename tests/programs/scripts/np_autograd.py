"""Gradients of arrays, through control flow too."""

from mxnet import autograd, np, npx

npx.set_np()
x = np.arange(4.0)
x.attach_grad()
print(x.grad)
with autograd.record():
    y = 2 * np.dot(x, x)
y.backward()
print(y, x.grad, x.grad == 4 * x)
with autograd.record():
    y = x.sum()
y.backward()
print(x.grad)
with autograd.record():
    y = x * x
    u = y.detach()
    z = u * x
z.backward()
print(x.grad == u)
y.backward()
print(x.grad == 2 * x)


def f(a):
    b = a * 2
    while np.linalg.norm(b) < 1000:
        b = b * 2
    return b if b.sum() > 0 else 100 * b


for value in (0.3, -0.7):
    a = np.array(value)
    a.attach_grad()
    with autograd.record():
        d = f(a)
    d.backward()
    print(a.grad == d / a, d)
x = np.arange(-3.0, 3.0, 1.0)
x.attach_grad()
for g in (npx.relu, npx.sigmoid, np.tanh, np.sin, lambda v: np.log(1 + np.exp(v)), lambda v: np.power(v, 3)):
    with autograd.record():
        y = g(x)
    y.backward()
    print(y, x.grad)
w = np.ones((2, 3))
w.attach_grad("add")
for _ in range(2):
    with autograd.record():
        s = (w.reshape(3, 2)[1:] * np.array([[1.0, 2.0], [3.0, 4.0]])).sum()
    s.backward()
print(w.grad)
