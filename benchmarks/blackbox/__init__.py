"""At most 2000 n evaluations: `make bench-blackbox`."""
