"""How a front end is measured: the engine it is fed by, the client that reads it, the accounts."""
