"""GPU kernels written in Triton: their tiles, warps and stages, measured on the NVIDIA GPU that is here."""
