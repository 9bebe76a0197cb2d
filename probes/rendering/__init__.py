"""What comes back: the paths, the renders of a template, and what became of a text."""
