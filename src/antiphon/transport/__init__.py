"""From the socket to the route handler: Quart on Hypercorn, with what they get wrong put right."""
