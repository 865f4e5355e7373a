"""Compiles lowered programs: :func:`codegen.build.build` and the Module it returns."""
