"""Training: what is to be learned from what, and the fit itself."""
