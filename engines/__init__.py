"""Things that answer questions: no HTTP, no wire, no thresholds, no keys, no money."""
