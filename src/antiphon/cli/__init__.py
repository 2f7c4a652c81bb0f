"""The command line: thin modules, one per command."""
