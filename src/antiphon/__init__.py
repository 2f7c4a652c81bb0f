"""Antiphon: an LLM inference server whose every answer is an event log."""

__version__ = "0.1.0"
