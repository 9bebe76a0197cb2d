"""What differs: between paths, between two templates, and from a snapshot."""
