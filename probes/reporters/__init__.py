"""How reports are written: one module a format."""
