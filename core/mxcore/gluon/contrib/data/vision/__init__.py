"""Loaders of images, with and without boxes of objects, and transforms of both."""

from __future__ import annotations

from . import dataloader, transforms
from .dataloader import ImageBboxDataLoader, ImageDataLoader, create_bbox_augment, create_image_augment

__all__ = [
    "ImageBboxDataLoader",
    "ImageDataLoader",
    "create_bbox_augment",
    "create_image_augment",
    "dataloader",
    "transforms",
]
