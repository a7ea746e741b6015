"""What to do to images before a network sees them."""

from __future__ import annotations

from ....block import Block, HybridBlock
from ....loss.base import numeric_types
from ....nn import HybridSequential, Sequential
from ....utils import is_np_array
from .basic import Cast, Normalize, ToTensor
from .color import RandomBrightness, RandomColorJitter, RandomContrast, RandomHue, RandomLighting, RandomSaturation
from .compose import Compose, RandomApply
from .geometry import (
    CenterCrop,
    CropResize,
    RandomFlipLeftRight,
    RandomFlipTopBottom,
    RandomResizedCrop,
    RandomRotation,
    Resize,
    Rotate,
)

__all__ = [
    "Block",
    "Cast",
    "CenterCrop",
    "Compose",
    "CropResize",
    "HybridBlock",
    "HybridSequential",
    "Normalize",
    "RandomApply",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomHue",
    "RandomLighting",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSaturation",
    "Resize",
    "Rotate",
    "Sequential",
    "ToTensor",
    "is_np_array",
    "numeric_types",
]
