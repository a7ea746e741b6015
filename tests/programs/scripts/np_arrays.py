"""First steps with arrays."""

from mxnet import np, npx

npx.set_np()
x = np.arange(12)
print(x, x.shape, x.size, x.dtype)
X = x.reshape(3, 4)
print(X)
print(np.zeros((2, 3, 4)), np.ones((2, 3)))
Y = np.array([[2, 1, 4, 3], [1, 2, 3, 4], [4, 3, 2, 1]])
print(X + Y, X * Y, X / (Y + 1), X**2, np.exp(Y))
print(np.dot(X, Y.T))
print(np.concatenate([X, Y], axis=0), np.concatenate([X, Y], axis=1))
print(X == Y, (X < Y).sum(), X.sum(), X.mean(axis=0), X.sum(axis=1, keepdims=True))
a, b = np.arange(3).reshape(3, 1), np.arange(2).reshape(1, 2)
print(a + b, a * b)
print(X[-1], X[1:3], X[1, 2], X[:, 1], X[..., ::2])
X[1, 2] = 9
X[0:2, :] = 12
print(X)
before = id(Y)
Z = np.zeros_like(Y)
Z[:] = X + Y
X += Y
print(id(Y) == before, (X == Z).all())
A = X.asnumpy()
B = np.array(A)
print(type(A).__module__, type(B).__name__, float(np.array([3.5])), np.array([3.5]).item())
print(X[X > 10].shape, np.where(X > 10, X, -1), X.argmax(), X.argmax(axis=1), X.T.shape)
print(np.linalg.norm(np.array([3.0, 4.0])), np.abs(np.array([-1.5, 2])).sum(), np.stack([x[:2], x[2:4]]))
print(np.expand_dims(x, 0).shape, np.squeeze(x.reshape(1, 12)).shape, np.repeat(x[:3], 2), np.tile(x[:3], 2))
print(np.split(x, 3), np.cumsum(x), np.clip(x, 2, 5), np.maximum(x, 5), np.sort(np.array([3, 1, 2])))
print(npx.one_hot(np.array([0, 2]), 3), npx.softmax(np.array([[1.0, 2.0, 3.0]])), npx.relu(np.array([-1.0, 1.0])))
print(np.meshgrid(np.arange(2), np.arange(3)), np.eye(2), np.tril(np.ones((3, 3))))
print(
    repr(np.array([[1.5, 2], [3, 4]])),
    repr(np.array(2.5)),
    repr(np.array([1, 2], dtype="int32")),
    str(np.zeros((0, 2)).shape),
)
