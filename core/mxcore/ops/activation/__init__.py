"""Activations, dropout and the softmax family."""
