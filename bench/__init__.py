"""Side-by-side measurements: every number is a ratio to a peer alive in the same run."""
