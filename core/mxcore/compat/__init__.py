"""Running code written for MXNet: ``import mxnet`` answered by mxcore, and names that time has removed.

`install_as_mxnet` is for anybody; `legacy_names` changes other people's modules and is therefore for programs
that run one script, as ``mxcore run`` does.
"""

from .alias import install_as_mxnet
from .legacy import legacy_names

__all__ = ["install_as_mxnet", "legacy_names"]
