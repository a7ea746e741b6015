"""Normalization: over batches, layers, groups, instances, to unit length, across neighbouring channels."""
