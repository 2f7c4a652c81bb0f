"""Streams of chunks: Chat Completions and Completions."""
