"""The Clef engine against a plain transformers forward, on random weights."""
