"""Policies, problems and training."""
