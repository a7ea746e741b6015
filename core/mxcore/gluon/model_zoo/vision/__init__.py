"""Networks for images.

>>> import mxcore as mx
>>> net = mx.gluon.model_zoo.vision.resnet18_v1(classes=10)
>>> net.initialize()
>>> net(mx.nd.zeros((1, 3, 32, 32))).shape
(1, 10)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....base import error
from . import densenet, mobilenet, resnet, squeezenet, vgg
from .alexnet import AlexNet, alexnet
from .densenet import DenseNet, get_densenet
from .inception import Inception3, inception_v3
from .mobilenet import MobileNet, MobileNetV2, get_mobilenet, get_mobilenet_v2
from .resnet import BasicBlockV1, BasicBlockV2, BottleneckV1, BottleneckV2, ResNetV1, ResNetV2, get_resnet
from .squeezenet import SqueezeNet, get_squeezenet
from .vgg import VGG, get_vgg

if TYPE_CHECKING:
    from ...block import HybridBlock

_VARIANTS = {**resnet.VARIANTS, **vgg.VARIANTS, **squeezenet.VARIANTS, **densenet.VARIANTS, **mobilenet.VARIANTS}
globals().update(_VARIANTS)

__all__ = [
    "AlexNet",
    "BasicBlockV1",
    "BasicBlockV2",
    "BottleneckV1",
    "BottleneckV2",
    "DenseNet",
    "Inception3",
    "MobileNet",
    "MobileNetV2",
    "ResNetV1",
    "ResNetV2",
    "SqueezeNet",
    "VGG",
    "alexnet",
    "get_densenet",
    "get_mobilenet",
    "get_mobilenet_v2",
    "get_model",
    "get_resnet",
    "get_squeezenet",
    "get_vgg",
    "inception_v3",
    *_VARIANTS,
]


def _model_name(function: str) -> str:
    """Name for `get_model`: versions with a dot, as in the names of published files."""
    if function.startswith("mobilenet"):
        return function.replace("_v2_", "v2-").replace("_", ".").replace("-", "_")
    return function.replace("_", ".") if function.startswith("squeezenet") else function


_MODELS = {_model_name(name): make for name, make in _VARIANTS.items()}
_MODELS.update(alexnet=alexnet, inceptionv3=inception_v3)


def get_model(name: str, **kwargs: Any) -> HybridBlock:
    """A network by its name, e.g. ``'resnet50_v2'``, ``'mobilenet0.25'``, ``'squeezenet1.1'``.

    Parameters
    ----------
    name : str
        In any case.
    pretrained : bool, default False
        Load the published parameters (ImageNet).
    ctx : Context, default cpu()
        Where to put them.
    root : str, default '~/.mxnet/models'
        Folder where parameter files are kept.
    **kwargs
        classes and other arguments of the network.

    Returns
    -------
    HybridBlock

    Raises
    ------
    MXNetError (ValueError)
        If there is no such network.
    """
    make = _MODELS.get(name.lower())
    if make is None:
        raise error(ValueError, f"Model {name} is not supported. Available options are {', '.join(sorted(_MODELS))}")
    net: HybridBlock = make(**kwargs)
    return net
