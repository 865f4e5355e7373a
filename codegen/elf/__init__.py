"""ELF files: relocatable objects as LLVM writes them, read and linked into shared libraries."""
