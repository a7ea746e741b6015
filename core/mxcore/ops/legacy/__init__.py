"""The first versions of convolution, pooling and batch normalization, which old models still name."""
