"""Devices over libraries of the Python array API standard, and what bodies may use of any device's arrays."""

from .namespace import ArrayAPINamespace

__all__ = ["ArrayAPINamespace"]
