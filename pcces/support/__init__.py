"""Small things that any room may use and that know nothing of optimisation: files, JSON, words, trees, interrupts, threads."""
