"""Sixteen clients at once that want all kinds of things of a real server, and nothing is lost.

``python -m benchmarks.mixed_load --model fixtures/models/tinychat`` (default: the default model)
starts a server, asks every question alone, then all of them at once, some of them by clients that
leave. Each must get exactly one end and the answer that it got alone; afterwards nothing may run,
wait or hold a page.

    asks.py     the questions        texts.py   what they are about
    reading.py  one client           server.py  the server, and its metrics
    load.py     alone, then at once  table.py   what came of it
"""
