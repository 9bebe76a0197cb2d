"""How rows are written: one module a format, found by name or by the ending of a file.

A reporter is a module of this folder with a `FORMAT`. A scan gives rows; so does anything that makes
`probes.results.rows.Row` of what it found. Whatever a stranger wrote goes through `escaping`.
"""
