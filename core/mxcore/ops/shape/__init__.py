"""Shape and order of elements: reshape, transpose, join and split, repeat and broadcast."""
