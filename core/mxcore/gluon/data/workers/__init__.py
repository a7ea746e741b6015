"""Workers of the data loader: threads or processes that turn lists of indices into batches.

Both pools have the same three methods: `submit` takes a job, `collect` waits for any finished one, `close`
ends it all.
"""

from __future__ import annotations
