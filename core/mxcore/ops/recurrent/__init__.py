"""Recurrent networks of several layers, in one or both directions, with all weights packed in one vector."""
