"""What a server counts of clients it could not serve to the end.

Owns the closed sets of reasons, which are labels of metrics (docs/operations.md), and the way from
an error of TLS to one of them. Plain numbers: they are exported when somebody asks.
"""

import enum
import ssl
from collections import Counter
from dataclasses import dataclass, field

_EXPIRED, _NOT_YET = 10, 9  # X509_V_ERR_CERT_HAS_EXPIRED and _NOT_YET_VALID
_NO_ISSUER = frozenset({2, 18, 19, 20, 21})  # X509_V_ERR_...: no way up to a CA that is trusted
_ALERT = "_ALERT_"  # in the reason of an error: the peer said so
_OTHER_PROTOCOL = frozenset(
    {
        "HTTP_REQUEST",
        "HTTPS_PROXY_REQUEST",
        "WRONG_VERSION_NUMBER",
        "UNKNOWN_PROTOCOL",
        "UNEXPECTED_MESSAGE",
        "RECORD_LAYER_FAILURE",
        "PACKET_LENGTH_TOO_LONG",
        "BAD_RECORD_TYPE",
        "INVALID_CCS_MESSAGE",
        "BAD_PACKET",
    }
)


class Handshake(enum.StrEnum):
    """Why a TLS handshake came to nothing."""

    EXPIRED = "expired"
    """The client's certificate is not valid now."""
    UNKNOWN_CA = "unknown_ca"
    """The client's certificate is of another CA."""
    BAD_CERTIFICATE = "bad_certificate"
    """The client's certificate is of no use for another reason."""
    REFUSED = "refused"
    """The client broke it off with an alert, as one does that does not trust the hub's CA."""
    NOT_TLS = "not_tls"
    """What came is no TLS."""
    TIMEOUT = "timeout"
    CLOSED = "closed"
    """The client hung up, as load balancers do that only look whether the port is open."""
    OTHER = "other"
    """No common version or cipher, and what else TLS knows."""


class Cut(enum.StrEnum):
    """Why a stream or a connection was cut by the hub."""

    SLOW_READER = "slow_reader"
    """It did not take what was queued for it."""
    LATE_REQUEST = "late_request"
    """The rest of its request did not come in time."""
    NO_ROOM = "no_room"
    """The bodies of unfinished requests, of all clients together, took too much memory."""
    FAILED = "failed"
    """The hub could not finish what it had begun to answer."""


def reason_of(error: Exception) -> Handshake:
    """Return what an error of a handshake means."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in (_EXPIRED, _NOT_YET):
            return Handshake.EXPIRED
        if error.verify_code in _NO_ISSUER:
            return Handshake.UNKNOWN_CA
        return Handshake.BAD_CERTIFICATE
    if isinstance(error, ssl.SSLEOFError) or not isinstance(error, ssl.SSLError):
        return Handshake.CLOSED
    if _ALERT in (error.reason or ""):
        return Handshake.REFUSED
    return Handshake.NOT_TLS if error.reason in _OTHER_PROTOCOL else Handshake.OTHER


@dataclass(slots=True)
class Tally:
    """The counts of one server since it started."""

    handshakes: Counter[Handshake] = field(default_factory=Counter)
    streams: Counter[Cut] = field(default_factory=Counter)
    connections: Counter[Cut] = field(default_factory=Counter)
