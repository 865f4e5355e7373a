"""A package outside tir. Its modules register what they have when the entry points import them."""
