"""What compiled code needs while it runs: threads, and calls back into Python."""
