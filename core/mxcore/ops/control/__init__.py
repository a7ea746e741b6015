"""Control flow: operators that hold sub-graphs (``_foreach``, ``_while_loop``, ``_cond``).

They run in the caller's thread, step by step. A sub-graph is compiled where executors are there to do so, and runs
operator by operator otherwise; :mod:`.steps` has both under one roof. So each operator is written once for arrays,
graphs and every device.
"""

from .interpret import interpret
from .operators import cond, foreach, while_loop
from .steps import hooks

__all__ = ["cond", "foreach", "hooks", "interpret", "while_loop"]
