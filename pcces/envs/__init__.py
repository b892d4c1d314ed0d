"""Environments: JAX tasks and adapters to other simulators."""
