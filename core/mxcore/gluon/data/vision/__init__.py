"""Data sets of images and what to do to images."""

from __future__ import annotations

from ...._reexports import reexports
from . import transforms
from .downloaded import CIFAR10, CIFAR100, MNIST, FashionMNIST
from .folder import ImageFolderDataset
from .record import ImageRecordDataset

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "ImageFolderDataset", "ImageRecordDataset", "transforms"]

__getattr__ = reexports(__name__)
