"""The web page at `/ui`: what was spent, what went up, whose keys there are, and a playground."""
