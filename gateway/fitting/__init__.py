"""Makes heads for the fitted engine of labelled examples. Training time only: nothing serves it."""
