"""Inference on factor graphs: variables of any number of states, tables of any number of axes."""
