"""Wire formats: each module decodes bodies to inquiries and words decisions and problems."""
