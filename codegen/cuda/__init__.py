"""CUDA: kernels as readable C, compiled by NVRTC, launched through the driver."""
