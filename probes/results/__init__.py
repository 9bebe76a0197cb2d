"""Rows and tallies: what reporters write and a scan counts."""
