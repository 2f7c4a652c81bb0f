"""Structured output: the tokens that a form leaves to be drawn, by llguidance.

vocabulary.py  what llguidance has to know of the model's tokens
source.py      a ``GrammarSpec`` as a grammar of llguidance, or why it cannot be one
schema.py      what is asked of a JSON Schema before it is compiled;  endless.py  and after
place.py       where in a schema the compiler stumbled
compiler.py    grammars, compiled once each;  workers.py  the threads that do it
state.py       where the text of one sequence has come to;  thought.py  before its answer begins
masks.py       the masks of a step, filled beside its forward pass
"""
