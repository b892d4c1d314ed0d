"""Where evaluations run: on the device (JAX), in local worker processes, on a Ray cluster."""
