"""From logits to a token: the order is that of ``sampler.sample``."""
