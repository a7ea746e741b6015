"""Stochastic variance reduced gradients for modules, as ``mxnet.contrib.svrg_optimization``."""

from . import svrg_module
from .svrg_module import SVRGModule

__all__ = ["SVRGModule", "svrg_module"]
