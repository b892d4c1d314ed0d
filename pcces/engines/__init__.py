"""Where things run: compiled on the device (JAX), in local worker processes, on a Ray cluster."""

ENGINES = ("device", "local", "ray")
