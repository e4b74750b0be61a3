"""Compiled loops over arrays: no classes, no policy, the caller allocates every output."""
