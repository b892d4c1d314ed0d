"""The paper's figures and tables as data, a runner for them, and what came out."""
