"""The HTTP edge of tiergate, and the one place where engines and policies are put together."""

__version__ = "0.1.0"
