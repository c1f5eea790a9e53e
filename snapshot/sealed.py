"""Sealed JSON: a small object whose last member is a MAC of all before it, under the hub key.

Owns that form, which HEAD and manifests share. The seal is checked on the bytes as they lie in the
bucket, so an older format is checked as it was written.
"""

import hmac

import msgspec

from snapshot.seal import HubKey, head_mac

_MEMBER = b'"seal":"'
_END = b'"}'
_MAC_DIGITS = 64


def encode_sealed(bare: msgspec.Struct, key: HubKey) -> bytes:
    """Return `bare` as JSON with its seal; its last field is `seal` and empty."""
    data = msgspec.json.encode(bare)
    return data.removesuffix(_END) + head_mac(data, key).encode() + _END


def is_sealed_by(data: bytes, key: HubKey) -> bool:
    """Whether `key` sealed this, byte for byte."""
    at = len(data) - len(_END) - _MAC_DIGITS
    before, mac, end = data[: max(at, 0)], data[max(at, 0) : -len(_END)], data[-len(_END) :]
    if end != _END or not before.endswith(_MEMBER):
        return False
    return hmac.compare_digest(head_mac(before + _END, key).encode(), mac)
