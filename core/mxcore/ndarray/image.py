"""Image operators over arrays (``mx.nd.image``)."""

from .._views import eager_function, namespace

__getattr__, __dir__ = namespace(globals(), "image", eager_function)
