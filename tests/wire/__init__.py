"""The gateway as the world meets it: real sockets, the official clients, hostile bytes."""
