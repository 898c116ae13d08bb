"""File formats of other tools: `export` writes studies in them, `import` reads runs from them."""
