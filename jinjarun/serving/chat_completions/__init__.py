"""What the paths of vLLM and SGLang have in common: reading bodies, refusing them, rows, contents, transformers."""
