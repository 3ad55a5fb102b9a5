"""A few bytes beside the ledger that differ after every change to a key.

Gateways map them into memory, so that asking whether any key has changed is no system call.
"""

import mmap
import os

_BYTES = 8


class ChangeSignal:
    """Shared by every process that has opened the same ledger."""

    def __init__(self, ledger: str) -> None:
        """Opens, or creates for the ledger's owner only, the file beside it. Raises: OSError."""
        handle = os.open(f"{ledger}-keys", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            _give_to_owner_of(ledger, handle)
            if os.fstat(handle).st_size < _BYTES:
                os.ftruncate(handle, _BYTES)
            self._map = mmap.mmap(handle, _BYTES)
        finally:
            os.close(handle)

    @property
    def value(self) -> bytes:
        """Eight bytes; compare them, they mean nothing."""
        return self._map[:_BYTES]

    def change(self) -> None:
        """Make the value another one."""
        self._map[:_BYTES] = os.urandom(_BYTES)

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()


def _give_to_owner_of(ledger: str, handle: int) -> None:
    """What root opens stays usable for the gateway, as with SQLite's own files. Raises: OSError."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    owner, own = os.stat(ledger), os.fstat(handle)
    if (owner.st_uid, owner.st_gid) != (own.st_uid, own.st_gid):
        os.fchown(handle, owner.st_uid, owner.st_gid)
