"""Operators whose names begin with an underscore, over arrays."""
from .._views import eager_function, namespace

__getattr__, __dir__ = namespace(globals(), "_internal", eager_function)
