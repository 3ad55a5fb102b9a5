"""Small heads on the shared encoder, one per question that somebody has labelled examples for."""
