"""GPU kernels written in Triton: tiles, warps and stages, measured on this machine's NVIDIA GPU."""
