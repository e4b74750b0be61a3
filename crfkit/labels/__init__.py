"""What labels mean: tag schemes, spans, codes, and what wrong labels cost."""
