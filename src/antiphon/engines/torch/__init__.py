"""The torch engine: our own decoder, paged KV cache and scheduler, on CPU or CUDA.

torch itself is imported when an engine starts, so importing this package is cheap::

    engine.py     the port: what the event loop's thread sees
    start.py      files and settings to a loop; child.py: the same in a process of its own
    loop.py       one turn: drain the inbox, schedule, run, book, frame
    intake.py     what is taken, refused (admission.py) or held;  rows.py  from a step to its frame
    scheduler.py  who runs in a step (step.py); sequence.py, pages.py, holdings.py: what it holds
    prefix_cache.py  pages that are read once and found again
    runner.py     one step on the device; batch.py: its tensors
    models/       the decoder;  weights/  files to tensors
    sampling/     from logits to a token, and to the logprobs of a prompt (prompt_scores.py)
    grammar/      forms that texts are held to, as masks
"""

from antiphon.engines.torch.engine import TorchEngine

__all__ = ["TorchEngine"]
