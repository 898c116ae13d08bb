"""Whole pipelines of LLVM, with nested pass managers: a live compiler, through the C interface of libLLVM."""
