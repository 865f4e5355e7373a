"""The CPU backend: lowered programs to LLVM assembly, and from there to machine code."""
