"""Transforms one after the other, or by chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....block import Block, HybridBlock
from ....nn import HybridSequential, Sequential
from .base import draw

__all__ = ["Compose", "RandomApply"]


class Compose(Sequential):
    """Transforms one after the other.

    Parameters
    ----------
    transforms : list of Block or callable

    Notes
    -----
    Hybrid transforms that follow each other become a `HybridSequential`. Behaviour matched: MXNet 1.9.1
    ``gluon.data.vision.transforms.Compose``.

    Examples
    --------
    >>> import mxcore as mx
    >>> transforms = mx.gluon.data.vision.transforms
    >>> prepare = transforms.Compose([transforms.CenterCrop(4), transforms.ToTensor()])
    >>> prepare(mx.nd.zeros((6, 8, 3), dtype='uint8')).shape
    (3, 4, 4)
    """

    def __init__(self, transforms: Iterable[Any]) -> None:
        super().__init__()
        run: list[HybridBlock] = []
        for block in [*transforms, None]:
            if isinstance(block, HybridBlock):
                run.append(block)
                continue
            if len(run) == 1:
                self.add(run[0])
            elif run:
                group = HybridSequential()
                group.add(*run)
                self.add(group)
            run = []
            if block is not None:
                self.add(block)


class RandomApply(Sequential):
    """Apply transforms by chance, all or none.

    Parameters
    ----------
    transforms : Block or list of Block
    p : float, default 0.5
        How often.
    """

    def __init__(self, transforms: Block | Sequence[Block], p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms if isinstance(transforms, Block) else Compose(transforms)
        self.p = p

    def forward(self, x: Any, *args: Any) -> Any:
        return self.transforms(x, *args) if draw(0, 1) < self.p else x
