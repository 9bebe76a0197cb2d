"""`lint`: the rules over files and folders."""
