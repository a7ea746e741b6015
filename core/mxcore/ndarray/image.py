"""Image operators over arrays (``mx.nd.image``)."""

from .._op_functions import eager_function, namespace

__getattr__, __dir__ = namespace(globals(), "image", eager_function)
