"""Whole episodes in one GPU kernel, and the machinery that makes kernels of traced functions."""
