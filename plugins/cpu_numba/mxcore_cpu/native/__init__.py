"""Machine code without Numba: LLVM makes it, the cache keeps it, and Python calls it directly.

What Numba compiles it also wraps, and only Numba can load it again: a second of imports, tables and type inference
before the first kernel of a process runs, although its code has long been made. Here code is what a linker takes, an
object file with one entry. Loading it needs llvmlite alone, and takes a millisecond.
"""

from .code import Object, load, optimise, parsed
from .functions import FAST, function
from .kept import COUNTS, kept, name_of, unkept

__all__ = ["COUNTS", "FAST", "Object", "function", "kept", "load", "name_of", "optimise", "parsed", "unkept"]
