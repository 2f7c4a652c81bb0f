"""Engines: everything that turns token ids into token ids, behind one port (``port.py``)."""
