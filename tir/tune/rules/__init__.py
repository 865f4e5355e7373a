"""The rules, one a file; a new file is found by itself."""
