"""Workers of the data loader: threads or processes that turn lists of indices into batches.

Both pools have the same four methods: `submit` takes a job, `collect` waits for any finished one, `interrupt` ends that
waiting from another thread, `close` ends it all. Only in the process `owner`, which made it, has a pool its workers: a
fork copies no threads, and the answers of worker processes are the owner's.
"""

from __future__ import annotations
