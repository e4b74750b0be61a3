"""Families of distributions of tokens, one for each label."""
