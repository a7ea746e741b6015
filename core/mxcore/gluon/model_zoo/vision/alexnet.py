"""AlexNet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import nn
from .parts import Network, in_sequence, pretrained_or_not

if TYPE_CHECKING:
    from ....context import Context

__all__ = ["AlexNet", "alexnet"]


class AlexNet(Network):
    """AlexNet, in the single-device form (Krizhevsky, 2014, arXiv:1404.5997).

    Parameters
    ----------
    classes : int, default 1000
    **kwargs
        prefix, params.
    """

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = in_sequence(
                nn.Conv2D(64, 11, 4, 2, activation="relu"),
                nn.MaxPool2D(3, 2),
                nn.Conv2D(192, 5, padding=2, activation="relu"),
                nn.MaxPool2D(3, 2),
                nn.Conv2D(384, 3, padding=1, activation="relu"),
                nn.Conv2D(256, 3, padding=1, activation="relu"),
                nn.Conv2D(256, 3, padding=1, activation="relu"),
                nn.MaxPool2D(3, 2),
                nn.Flatten(),
                nn.Dense(4096, activation="relu"),
                nn.Dropout(0.5),
                nn.Dense(4096, activation="relu"),
                nn.Dropout(0.5),
            )
            self.output = nn.Dense(classes)


def alexnet(pretrained: bool = False, ctx: Context | None = None, root: str | None = None, **kwargs: Any) -> AlexNet:
    """AlexNet.

    Parameters
    ----------
    pretrained : bool, default False
        Load the published parameters (ImageNet).
    ctx : Context, default cpu()
        Where to put them.
    root : str, default '~/.mxnet/models'
        Folder where parameter files are kept.
    **kwargs
        classes and other arguments of the network.
    """
    return pretrained_or_not(AlexNet(**kwargs), "alexnet", pretrained, ctx, root)
