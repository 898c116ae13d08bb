"""Files: bounded reading, durable writing, locks, the cache folder, folder names."""
