"""The Responses stream: its events, its items, its order."""
