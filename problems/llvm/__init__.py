"""The order of LLVM's passes: a live compiler, through llvmlite."""
