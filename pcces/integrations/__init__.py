"""What other tools read: each integration is a file, and needs an extra of its own."""
