"""Output layers and losses: a forward pass that predicts, and the gradient of the loss."""
