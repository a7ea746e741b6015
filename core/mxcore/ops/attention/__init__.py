"""Multi-head attention over projections that lie interleaved in one array."""
