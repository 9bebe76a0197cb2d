"""The chapter `observed`: questions, and the answer of each path."""
