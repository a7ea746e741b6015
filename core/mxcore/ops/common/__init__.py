"""What operators of several families share: rules, gradients, bodies, dtypes."""
