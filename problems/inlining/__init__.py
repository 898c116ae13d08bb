"""Which calls LLVM inlines: a live compiler whose functions are parts, and whose best candidate clang replays."""
