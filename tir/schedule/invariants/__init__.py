"""What must hold of a scheduled program after every step."""
