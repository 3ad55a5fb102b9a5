"""The embedded default: a small sentence-embedding model whose weights come with the install."""
