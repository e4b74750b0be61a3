"""The objective: potentials x structure x loss x penalty, as a whole and in mini-batches."""
