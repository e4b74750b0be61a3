"""Features of segments as wholes: texts, lexicons, similar entries."""
