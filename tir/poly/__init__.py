"""Exact integer sets and relations: the one room that imports islpy."""
