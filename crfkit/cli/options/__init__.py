"""Arguments of the commands; what they do is imported when a command runs."""
