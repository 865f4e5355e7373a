"""CUDA: kernels as C that a person can read, compiled by NVRTC, launched through the driver."""
