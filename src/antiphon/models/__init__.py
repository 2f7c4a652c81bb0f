"""Where a model's files are: names, the cache, fetching, and what a GGUF file says of itself."""
