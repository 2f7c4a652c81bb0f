"""The torch engine: our own decoder, paged KV cache and scheduler, on CPU or CUDA.

torch itself is imported when an engine starts, so importing this package is cheap::

    engine.py     the port: what the event loop's thread sees
    start.py      files and settings to a loop; child.py: the same in a process of its own
    loop.py       one turn: drain the inbox, schedule, run, book, frame
    admission.py  what is refused before it is queued
    scheduler.py  who runs in a step; pages.py, sequence.py: what a running request holds
    runner.py     one step on the device; batch.py: its tensors
    models/       the decoder;  weights/  files to tensors
    sampling/     from logits to a token, and to the logprobs of a prompt (prompt_scores.py)
"""

from antiphon.engines.torch.engine import TorchEngine

__all__ = ["TorchEngine"]
