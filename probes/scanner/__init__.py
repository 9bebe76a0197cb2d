"""The parts of a scan: files to templates, templates to answers, answers to rows, rows to figures."""
