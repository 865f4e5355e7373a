"""From lowered programs to something that runs: :func:`codegen.build.build` and the Module it returns."""
