"""Optimise a noisy objective under hard constraints, and get an answer whose feasibility is certified."""
