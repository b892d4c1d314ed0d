"""Engines: compiled on the device (JAX), local worker processes, a Ray cluster."""

ENGINES = ("device", "local", "ray")
