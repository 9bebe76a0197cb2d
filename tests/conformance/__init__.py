"""What the real engines answered, and whether we answer the same.

`golden` reads the recordings, `compare` runs one of them through `jinjarun`, `run` prints the agreement for developers.
"""
