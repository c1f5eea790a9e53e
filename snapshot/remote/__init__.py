"""Object stores behind one seam: `open_remote(url)` gives a `Remote`."""

from snapshot.remote.api import Blob, Entry, Remote, Source
from snapshot.remote.open import open_remote
from snapshot.remote.probe import Capabilities, FencingLevel, probe

__all__ = [
    "Blob",
    "Capabilities",
    "Entry",
    "FencingLevel",
    "Remote",
    "Source",
    "open_remote",
    "probe",
]
