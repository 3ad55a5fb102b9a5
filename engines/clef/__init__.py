"""Clef-flash with torch: a large hybrid decoder and a head that reads all of its hidden states."""
