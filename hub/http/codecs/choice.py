"""Which HTTP/2 library serves a connection.

`auto` is ngh2 where it is installed (wheels do not fit every platform), else python-hyper's h2;
both pass one contract suite.
"""

import importlib.util
from typing import Literal, TypeAlias

from hub.clock import Clock
from hub.http.codec import ClientCodec, ServerCodec
from hub.http.codecs.fields import DateHeader
from hub.http.codecs.http2_hyper import HyperClient, HyperServer
from hub.http.limits import Limits

Http2Library: TypeAlias = Literal["auto", "ngh2", "h2"]


def choose_library(wanted: Http2Library) -> Http2Library:
    """Resolve `auto`; raises ValueError when `wanted` is not installed."""
    is_installed = importlib.util.find_spec("ngh2") is not None
    if wanted == "auto":
        return "ngh2" if is_installed else "h2"
    if wanted == "ngh2" and not is_installed:
        raise ValueError("http2 library ngh2 is not installed: install it, or choose auto or h2")
    return wanted


def http2_server(
    library: Http2Library, *, date: DateHeader, limits: Limits, clock: Clock
) -> ServerCodec:
    """Return a server's codec of a library `choose_library` has named."""
    if library == "ngh2":
        from hub.http.codecs.http2_ngh2 import Ngh2Server  # noqa: PLC0415  not installed everywhere

        return Ngh2Server(date=date, limits=limits)
    return HyperServer(date=date, limits=limits, clock=clock)


def http2_client(
    library: Http2Library, *, stream_window_bytes: int, connection_window_bytes: int
) -> ClientCodec:
    """Return a client's codec of a library `choose_library` has named."""
    if library == "ngh2":
        from hub.http.codecs.http2_ngh2 import Ngh2Client  # noqa: PLC0415  not installed everywhere

        return Ngh2Client(
            stream_window_bytes=stream_window_bytes, connection_window_bytes=connection_window_bytes
        )
    return HyperClient(
        stream_window_bytes=stream_window_bytes, connection_window_bytes=connection_window_bytes
    )
