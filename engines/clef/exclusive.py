"""What only one thread of the process may do on CUDA at a time, whatever device it is for.

While kernels are recorded, nobody else may record, and nobody may give memory back: the allocator
takes both for a mistake. Several engines share a process, so the lock belongs to the process too.
"""

import threading

EXCLUSIVE = threading.RLock()
"""Held while kernels are recorded, and while memory is given back."""
