"""Convolutional networks of `gluon.model_zoo.vision`, and the same layers in PyTorch."""

from __future__ import annotations

from .. import training
from . import Workload
from .steps import classifying


def _training(mx, model, batch, side):
    return training.classifying(mx, _made(mx, model), (batch, 3, side, side), 1e-4, hybridize=True)


def _inference(mx, model, batch, side):
    net, x = _made(mx, model), mx.nd.random.uniform(shape=(batch, 3, side, side))
    return lambda: net(x).wait_to_read()


def _made(mx, model):
    mx.random.seed(0)
    net = getattr(mx.gluon.model_zoo.vision, model)()
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    return net


def _training_torch(torch, model, batch, side):
    return classifying(torch, NETWORKS[model](torch.nn), (batch, 3, side, side), 1e-4)


def _inference_torch(torch, model, batch, side):
    net, x = NETWORKS[model](torch.nn).eval(), torch.rand(batch, 3, side, side)
    return torch.inference_mode()(lambda: net(x))


def _sum(nn, body, shortcut, after):
    """A block whose result is added to its input."""

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.shortcut, self.after = body, shortcut, after

        def forward(self, x):
            return self.after(self.body(x) + self.shortcut(x))

    return Sum()


def _conv(nn, inputs, outputs, kernel, stride=1, act=None, bias=False, groups=1):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=bias)
    return [conv, nn.BatchNorm2d(outputs), *([act(inplace=True)] if act else [])]


def _resnet(nn, counts, bottleneck):
    """ResNet v1 as Gluon has it: the first convolution of a bottleneck strides, and those of one pixel have a bias."""
    layers = [*_conv(nn, 3, 64, 7, 2, nn.ReLU), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for stage, count in enumerate(counts):
        inner = 64 << stage
        outer = inner * (4 if bottleneck else 1)
        for i in range(count):
            stride = 2 if i == 0 and stage else 1
            if bottleneck:
                body = _conv(nn, width, inner, 1, stride, nn.ReLU, True) + _conv(nn, inner, inner, 3, 1, nn.ReLU)
                body += _conv(nn, inner, outer, 1, bias=True)
            else:
                body = _conv(nn, width, inner, 3, stride, nn.ReLU) + _conv(nn, inner, outer, 3)
            change = width != outer or stride > 1
            short = nn.Sequential(*_conv(nn, width, outer, 1, stride)) if change else nn.Identity()
            layers.append(_sum(nn, nn.Sequential(*body), short, nn.ReLU(inplace=True)))
            width = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


#: (how much wider inside, channels, blocks, stride of the first) of MobileNetV2
BOTTLENECKS = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)


def _mobilenet(nn):
    layers, width = _conv(nn, 3, 32, 3, 2, nn.ReLU6), 32
    for factor, channels, count, first in BOTTLENECKS:
        for i in range(count):
            inner, stride = width * factor, first if i == 0 else 1
            body = _conv(nn, width, inner, 1, 1, nn.ReLU6) + _conv(nn, inner, inner, 3, stride, nn.ReLU6, groups=inner)
            body = nn.Sequential(*body, *_conv(nn, inner, channels, 1))
            layers.append(_sum(nn, body, nn.Identity(), nn.Identity()) if i else body)
            width = channels
    layers += [*_conv(nn, width, 1280, 1, 1, nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Conv2d(1280, 1000, 1, bias=False)]
    return nn.Sequential(*layers, nn.Flatten())


NETWORKS = {
    "resnet18_v1": lambda nn: _resnet(nn, (2, 2, 2, 2), False),
    "resnet50_v1": lambda nn: _resnet(nn, (3, 4, 6, 3), True),
    "mobilenet_v2_1_0": _mobilenet,
}
#: What a quick run does of training and of inference.
TRAINED, INFERRED = ("resnet18_v1", 2, 32), ("mobilenet_v2_1_0", 1, 32)


def _train(name, model, batch, side, wanted=0.9, **more):
    return Workload(name, wanted, _training, _training_torch, (model, batch, side), TRAINED, **more)


def _infer(name, model, batch, wanted=0.9):
    return Workload(name, wanted, _inference, _inference_torch, (model, batch, 224), INFERRED)


WORKLOADS = (
    _train("ResNet-18 training b16 112²", "resnet18_v1", 16, 112),
    _infer("ResNet-18 inference b1 224²", "resnet18_v1", 1),
    _infer("ResNet-18 inference b16 224²", "resnet18_v1", 16),
    _infer("MobileNetV2 inference b1 224²", "mobilenet_v2_1_0", 1),
    _infer("MobileNetV2 inference b16 224²", "mobilenet_v2_1_0", 16),
    _infer("ResNet-50 inference b1 224²", "resnet50_v1", 1),
    _infer("ResNet-50 inference b16 224²", "resnet50_v1", 16),
    _train("ResNet-50 training b1 224²", "resnet50_v1", 1, 224),
    _train("ResNet-50 training b16 224²", "resnet50_v1", 16, 224, memory=0.9),
)
