"""`fuzz`: generated conversations, and the laws that they break."""
