"""The doorway for processes that ``mxcore run`` starts indirectly: spawned workers, scripts run by scripts.

``mxcore run`` puts the folder of this package on their search path. Importing it installs mxcore as
``mxnet``, and the real answer takes this module's place.
"""

import os
import sys

from mxcore.compat import install_as_mxnet, legacy_names
from mxcore.compat.alias import top

install_as_mxnet()
if os.environ.get("MXCORE_LEGACY_NAMES") == "1":
    legacy_names()
sys.modules[__name__] = top()
