"""Vocabularies and embeddings of words, as ``mxnet.contrib.text``."""

from . import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]
