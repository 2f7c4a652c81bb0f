"""The engine port as bytes: what goes between a server and an engine in a process of its own."""
