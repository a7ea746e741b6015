"""A small residual network in the manner of a book: blocks of blocks, batch normalization, two schedules, saved and read."""

import numpy as onp
from mxnet import autograd, gluon, init, lr_scheduler, np, npx
from mxnet.gluon import nn

npx.set_np()


class Residual(nn.Block):
    def __init__(self, num_channels, use_1x1conv=False, strides=1, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = nn.Conv2D(num_channels, kernel_size=3, padding=1, strides=strides)
        self.conv2 = nn.Conv2D(num_channels, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2D(num_channels, kernel_size=1, strides=strides) if use_1x1conv else None
        self.bn1 = nn.BatchNorm()
        self.bn2 = nn.BatchNorm()

    def forward(self, X):
        Y = npx.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        if self.conv3:
            X = self.conv3(X)
        return npx.relu(Y + X)


def resnet_block(num_channels, num_residuals, first_block=False):
    blk = nn.Sequential()
    for i in range(num_residuals):
        if i == 0 and not first_block:
            blk.add(Residual(num_channels, use_1x1conv=True, strides=2))
        else:
            blk.add(Residual(num_channels))
    return blk


def build():
    net = nn.Sequential()
    net.add(nn.Conv2D(4, kernel_size=3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2))
    net.add(resnet_block(4, 1, first_block=True), resnet_block(8, 1), nn.GlobalAvgPool2D(), nn.Dense(3))
    return net


def fill(net, seed=3):
    rng = onp.random.RandomState(seed)
    for name in sorted(net._collect_params_with_prefix()):
        p = net._collect_params_with_prefix()[name]
        if name.endswith("weight"):
            p.set_data(np.array(rng.normal(0, 0.3, p.shape).astype("float32")))


rng = onp.random.RandomState(0)
labels = rng.randint(0, 3, 36)
images = rng.normal(0, 0.3, (36, 1, 12, 12)).astype("float32")
for i, k in enumerate(labels):
    images[i, 0, 4 * k : 4 * k + 4] += 1.5

net = build()
net.initialize(init.Xavier())
net(np.zeros((1, 1, 12, 12)))
fill(net)
X = np.array(images[:2])
for layer in net:
    X = layer(X)
    print(layer.__class__.__name__, "output shape:", X.shape)

loss = gluon.loss.SoftmaxCrossEntropyLoss()
schedule = lr_scheduler.CosineScheduler(18, base_lr=0.1, final_lr=0.01, warmup_steps=3, warmup_begin_lr=0.02)
trainer = gluon.Trainer(net.collect_params(), "sgd", {"lr_scheduler": schedule, "momentum": 0.9, "wd": 1e-3})
data = gluon.data.DataLoader(gluon.data.ArrayDataset(images, labels.astype("int32")), 12)
for epoch in range(5):
    total, right = 0.0, 0
    for X, y in data:
        with autograd.record():
            out = net(X)
            ls = loss(out, y)
        ls.backward()
        trainer.step(X.shape[0])
        total += float(ls.sum())
        right += int((out.argmax(axis=1).astype("int32") == y).sum())
    print(f"epoch {epoch + 1}, loss {total / 36:.3f}, right {right}, learning rate {trainer.learning_rate:.4f}")

net.save_parameters("resnet.params")
other = build()
other.load_parameters("resnet.params")
same = onp.abs((other(np.array(images)) - net(np.array(images))).asnumpy()).max()
print("read again, difference", float(same))
print(npx.softmax(net(np.array(images[:3]))).argmax(axis=1), labels[:3])
