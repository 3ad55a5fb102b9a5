"""The bounded try at a small cross-encoder: recipe, derived questions, final report."""
