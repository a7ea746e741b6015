"""``python -m mxcore`` is the command ``mxcore``."""

import sys

from .cli import main

sys.exit(main())
