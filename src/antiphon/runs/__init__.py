"""Runs: one client request from acceptance to its terminal event."""
