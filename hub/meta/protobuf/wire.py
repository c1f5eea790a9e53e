"""The protobuf wire format: varints, tags and lengths.

Owns bytes and offsets; messages are the decoder's business. Groups (wire types 3 and 4) are
refused: no Kubernetes client has ever sent one.

>>> [(f.number, f.value, f.start, f.end) for f in fields(bytes.fromhex("0801120161"), 0, 5)]
[(1, 1, 1, 2), (2, 0, 4, 5)]
"""

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_MASK64 = 2**64 - 1


class WireError(ValueError):
    """Bytes that are no protobuf: the problem, its offset and, once known, its field."""

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(problem)
        self.problem, self.offset, self.path = problem, offset, ""

    def __str__(self) -> str:
        where = f" in {self.path}" if self.path else ""
        return f"{self.problem} at byte {self.offset}{where}"


class Field(NamedTuple):
    """One field as it lies in the bytes: `value` of a varint, else the range [start, end)."""

    number: int
    wire_type: int
    value: int
    start: int
    end: int


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message in ``data[start:end]``. Raises WireError."""
    at = start
    while at < end:
        tag_at = at
        tag, at = read_varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 2**29:
            raise WireError(f"illegal field number {number}", tag_at)
        value, first = 0, at
        if wire_type == VARINT:
            value, at = read_varint(data, at, end)
        elif wire_type == BYTES:
            length, first = read_varint(data, at, end)
            at = first + length
        elif wire_type in _FIXED:
            at += _FIXED[wire_type]
        else:
            raise WireError(f"unsupported wire type {wire_type}", tag_at)
        if at > end:
            raise WireError("unexpected end of data", first)
        yield Field(number, wire_type, value, first, at)


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the unsigned number at `at` and the offset after it. Raises WireError."""
    if at < end and data[at] < 0x80:  # nearly every tag and length is one byte
        return data[at], at + 1
    value = shift = 0
    for i in range(at, min(at + 10, end)):
        byte = data[i]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK64, i + 1
        shift += 7
    raise WireError("unexpected end of data" if end - at < 10 else "number too long", at)


def signed(value: int, bits: int) -> int:
    """Return the lower `bits` of an unsigned number as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def varint(value: int) -> bytes:
    """Return a number as a varint; negative ones take ten bytes, as protobuf wants."""
    value &= _MASK64
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def varint_field(number: int, value: int) -> bytes:
    """Return a field holding a number."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field holding bytes, text or a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value
