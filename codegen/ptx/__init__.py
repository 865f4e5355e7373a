"""NVRTC's PTX, executed on the CPU: the compiled kernel, without a GPU."""
