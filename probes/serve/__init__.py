"""`serve`: a server's endpoints without weights, and a running server beside our paths."""
