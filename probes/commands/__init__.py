"""The commands of `jinjarun`, one module each."""
