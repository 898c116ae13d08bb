"""The families of tasks: fusion, layout, tile, flags, joint."""
