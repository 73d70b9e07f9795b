"""The layers, one file per family: affine, activation, normalisation, container, attention, loss."""
