"""Fuzzing of everything that parses: targets, a coverage-guided runner, and what was found once."""
