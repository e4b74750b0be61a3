"""Online learning: an update after each mistake."""
