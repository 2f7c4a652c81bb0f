"""From model files to the decoder's tensors."""
