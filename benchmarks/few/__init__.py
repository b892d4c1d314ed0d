"""50 to 500 evaluations: `make bench-few`."""
