"""Measurements that a README or an issue quotes: run as modules, never by pytest."""
