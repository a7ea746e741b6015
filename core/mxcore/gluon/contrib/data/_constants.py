"""Words that mean something to the data sets of texts."""

__all__ = ["EOS_TOKEN"]

#: Stands at the end of each sentence.
EOS_TOKEN = "<eos>"
