"""Structured output: the tokens that a form leaves to be drawn, by llguidance.

vocabulary.py  what llguidance has to know of the model's tokens
source.py      a ``GrammarSpec`` as a grammar of llguidance, or why it cannot be one
schema.py      what is asked of a JSON Schema before it is compiled;  endless.py  and after
endless_rules.py  what is asked of a grammar of Lark
place.py       where in a schema the compiler stumbled
compilation.py one form to a matcher, or why not
compiler.py    who waits for which form;  workers.py  threads that compile;  kept.py  what is kept
harmless.py    forms that need no trial;  trials.py, trial.py  the others are tried in a process
walk.py        whether what compiles can be followed
state.py       where the text of one sequence has come to;  thought.py  before its answer begins
masks.py       the masks of a step, filled beside its forward pass
"""
