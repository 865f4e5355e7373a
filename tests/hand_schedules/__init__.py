"""Schedules written by hand, step by step, near the peak of a CPU: what the tuner's rules are measured against, and long
sequences of steps whose programs, texts and code are recorded."""
