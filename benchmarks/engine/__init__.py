"""The engine beside llama.cpp and transformers: the same model, one thread each, in one run.

loads.py         what is asked of everybody
child.py         a contestant in a process of its own
ours.py, bare.py, llama_cpp.py, with_transformers.py
figures.py       rounds into medians, ratios and a table
parts.py         where the time of our step goes
"""
