"""New kinds of things, defined outside of the package."""
