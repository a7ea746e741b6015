"""The networks that ``mxcore train`` knows by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ... import gluon
from ..._core.errors import suggest
from ...base import error

__all__ = ["image_shape", "make", "taking"]


def lenet(classes: int) -> gluon.nn.HybridSequential:
    """LeNet: two convolutions of 5 x 5 with 20 and 50 filters, and 500 hidden units."""
    nn = gluon.nn
    net = nn.HybridSequential(prefix="lenet_")
    with net.name_scope():
        net.add(
            nn.Conv2D(20, kernel_size=5, activation="relu"),
            nn.MaxPool2D(pool_size=2, strides=2),
            nn.Conv2D(50, kernel_size=5, activation="relu"),
            nn.MaxPool2D(pool_size=2, strides=2),
            nn.Dense(500, activation="relu"),
            nn.Dense(classes),
        )
    return net


def mlp(classes: int) -> gluon.nn.HybridSequential:
    """A perceptron with hidden layers of 128 and 64 units."""
    nn = gluon.nn
    net = nn.HybridSequential(prefix="mlp_")
    with net.name_scope():
        net.add(nn.Dense(128, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(classes))
    return net


#: Name -> (function of the number of classes, shape of an image).
OWN: dict[str, tuple[Callable[[int], gluon.HybridBlock], tuple[int, ...]]] = {
    "lenet": (lenet, (1, 28, 28)),
    "mlp": (mlp, (1, 28, 28)),
}
ZOO_SHAPE = (3, 224, 224)


def make(name: str, classes: int) -> gluon.HybridBlock:
    """Make a network that is not initialised yet.

    Parameters
    ----------
    name : str
        ``'lenet'``, ``'mlp'`` or the name of a model of ``gluon.model_zoo.vision``.
    classes : int
        Length of its output.

    Returns
    -------
    HybridBlock

    Raises
    ------
    MXNetError
        (also ValueError) if there is no such network.
    """
    if name in OWN:
        return OWN[name][0](classes)
    try:
        get_model = gluon.model_zoo.vision.get_model
    except (ImportError, AttributeError):
        raise error(
            ValueError, f"there is no network {name!r}{suggest(name, OWN)}; there are {', '.join(OWN)}"
        ) from None
    try:
        net: gluon.HybridBlock = get_model(name, classes=classes)
    except ValueError as e:
        raise error(
            ValueError,
            f"there is no network {name!r}{suggest(name, OWN)}; there are {', '.join(OWN)} and the models of "
            f"gluon.model_zoo.vision ({e})",
        ) from None
    return net


def image_shape(name: str) -> tuple[int, ...]:
    """The shape of an image that a network is made for."""
    return OWN[name][1] if name in OWN else ZOO_SHAPE


@contextlib.contextmanager
def taking(name: str, shape: tuple[int, ...]) -> Iterator[None]:
    """What a network is shown its first image in: an error names the network and the shape."""
    try:
        yield
    except ValueError as e:
        raise error(ValueError, f"network {name!r} cannot take images of shape {shape}: {e}") from e
