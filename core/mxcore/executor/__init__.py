"""Executors: symbols bound to arrays, run as flat programs; as ``mxnet.executor``."""
from .executor import Executor
from .program import Program

__all__ = ["Executor", "Program"]
