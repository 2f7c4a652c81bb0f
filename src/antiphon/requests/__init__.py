"""Requests: JSON bytes to typed, checked values. No HTTP, no engine, no I/O."""
