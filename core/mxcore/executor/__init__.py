"""Executors: symbols bound to arrays, run as flat programs; as ``mxnet.executor``."""

from .._reexports import reexports
from .body import Body
from .cached_op import CachedOp
from .executor import Executor
from .passes.settings import enabled, passes_off
from .program import Program

__all__ = ["Body", "CachedOp", "Executor", "Program", "enabled", "passes_off"]

__getattr__ = reexports(__name__)
