"""Pure decisions: no clock, no I/O, no randomness, no threads."""
