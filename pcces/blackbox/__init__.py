"""Minimising any noisy function under limits: ask, tell, certify."""
