"""Steps of training of small networks, and of parts of large ones."""

from __future__ import annotations

from .. import recurrent, training
from . import Workload


def _network(mx, network):
    return training.stepper(mx, network, hybridize=True)


def _network_torch(torch, network):
    nn = torch.nn
    layers = {
        "mlp": lambda: (nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)),
        "lenet": lambda: (
            *(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10)),
        ),
    }[network]()
    return classifying(torch, nn.Sequential(*layers), training.NETWORKS[network][1])


def classifying(torch, net, shape, rate=0.01):
    """A function that makes one step of training a classifier with a batch, in PyTorch."""
    net.train()
    loss, rule = torch.nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), rate, momentum=0.9)
    x, y = torch.rand(shape), torch.arange(shape[0]) % 10

    def step():
        rule.zero_grad()
        loss(net(x), y).backward()
        rule.step()

    return step


def _lstm(mx, case):
    return recurrent.stepper(mx, case)[0]


def _lstm_torch(torch, case):
    _, _, steps, batch, inputs, units, layers, both = recurrent.CASES[case]
    net = torch.nn.LSTM(inputs, units, layers, bidirectional=both)
    return _from_the_end(torch, net, torch.rand(steps, batch, inputs), lambda out: out[0])


def _from_the_end(torch, net, x, output=lambda out: out):
    """A function that makes one step of training on a gradient of the output that is given."""
    rule = torch.optim.SGD(net.parameters(), 0.001)
    head = torch.rand(output(net(x)).shape)

    def step():
        rule.zero_grad()
        output(net(x)).backward(head)
        rule.step()

    return step


def _transformer(mx, batch, length, units, heads):
    nn, gluon = mx.gluon.nn, mx.gluon

    class Encoder(gluon.HybridBlock):
        """A block of a transformer's encoder, normalised first; time before batch."""

        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.first, self.second = nn.LayerNorm(in_channels=units), nn.LayerNorm(in_channels=units)
                self.qkv = nn.Dense(3 * units, flatten=False, in_units=units)
                self.out = nn.Dense(units, flatten=False, in_units=units)
                self.wide = nn.Dense(4 * units, flatten=False, in_units=units, activation="relu")
                self.narrow = nn.Dense(units, flatten=False, in_units=4 * units)

        def hybrid_forward(self, F, x):
            qkv = self.qkv(self.first(x))
            weights = F.softmax(F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=heads))
            x = x + self.out(F.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=heads))
            return x + self.narrow(self.wide(self.second(x)))

    net = Encoder()
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001})
    x, head = (mx.nd.random.uniform(shape=(length, batch, units)) for _ in range(2))
    return training.step_of(mx, trainer, 1, lambda: net(x), head)


def _transformer_torch(torch, batch, length, units, heads):
    net = torch.nn.TransformerEncoderLayer(units, heads, 4 * units, dropout=0, norm_first=True)
    return _from_the_end(torch, net, torch.rand(length, batch, units))


def _embedding(mx, rows, width, shape):
    net = mx.gluon.nn.Embedding(rows, width, sparse_grad=True)
    net.initialize(mx.init.Uniform(0.1))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001})
    ids = mx.nd.floor(mx.nd.random.uniform(0, rows, shape=shape))
    head = mx.nd.random.uniform(shape=(*shape, width))
    return training.step_of(mx, trainer, 1, lambda: net(ids), head)


def _embedding_torch(torch, rows, width, shape):
    return _from_the_end(torch, torch.nn.Embedding(rows, width, sparse=True), torch.randint(rows, shape))


WORKLOADS = (
    Workload("MLP step b64", 0.8, _network, _network_torch, ("mlp",)),
    Workload("LeNet step b64", 0.6, _network, _network_torch, ("lenet",), ("mlp",)),
    Workload("LSTM step, 2 × 200 units", 0.7, _lstm, _lstm_torch, ("lstm, layer",), ("lstm, small",)),
    Workload("Transformer block step", 0.9, _transformer, _transformer_torch, (8, 128, 512, 8), (2, 4, 8, 2)),
    Workload("Embedding step, sparse", 1, _embedding, _embedding_torch, (100_000, 64, (64, 50)), (100, 4, (2, 3))),
)
