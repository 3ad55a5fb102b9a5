"""What was spent and what may be: keys, leases, charges. The only room that knows SQL."""
