"""Object stores behind one seam: `open_remote(url)` gives a `Remote`."""

from snapshot.remote.api import Blob, Entry, Remote, Source
from snapshot.remote.open import open_remote

__all__ = ["Blob", "Entry", "Remote", "Source", "open_remote"]
