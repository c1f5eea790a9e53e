"""Kubernetes' protobuf encoding of request bodies, driven by tables.

Typed clients (client-go since 0.32) send the built-in kinds this way and nothing else. `envelope`
is the way in, `tables` holds the field numbers, `schema` reads the tables, `decoder` and `encoder`
walk messages, `wire` knows bytes.
"""

from hub.meta.protobuf.envelope import MAGIC, decode_envelope, encode_envelope, is_supported

__all__ = ["MAGIC", "decode_envelope", "encode_envelope", "is_supported"]
