"""Attacks on certificates: `make bench-certificates`."""
