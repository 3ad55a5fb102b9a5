"""Servers that the gateway is measured against, each a process of its own."""
