"""The HTTP API: one module per endpoint family. Routes call ``runs``, never an engine."""
