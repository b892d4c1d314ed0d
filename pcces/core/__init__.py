"""Algorithm 1 and what it stands on, as pure functions on any array library."""
