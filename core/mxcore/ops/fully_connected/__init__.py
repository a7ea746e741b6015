"""The fully connected layer."""
