"""Images, as ``mx.nd.image`` and ``mx.image`` have them: decoding, tensors, sizes, flips, colours."""
