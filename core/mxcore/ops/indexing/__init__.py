"""Entries picked and written by indices and masks: take, Embedding, gather_nd, ``x[key]``."""
