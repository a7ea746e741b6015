"""Modules: a symbol with its parameters, bound, trained and run; as ``mxnet.module``.

>>> import mxcore as mx
>>> net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
>>> train = mx.io.NDArrayIter(mx.nd.ones((8, 3)), mx.nd.zeros(8), batch_size=4)
>>> mod = mx.mod.Module(net)
>>> mod.fit(train, num_epoch=3, optimizer_params={"learning_rate": 1.0})
>>> mod.score(train, "acc")
[('accuracy', 1.0)]
"""

from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .module import Module
from .python_module import PythonLossModule, PythonModule
from .sequential_module import SequentialModule

__all__ = ["BaseModule", "BucketingModule", "Module", "PythonLossModule", "PythonModule", "SequentialModule"]
