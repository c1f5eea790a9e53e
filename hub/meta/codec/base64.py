"""Base64 as Go's encoding/base64 reads it: of one form but for line ends, which mean nothing."""

import base64

_LINE_ENDS = str.maketrans("", "", "\r\n")


def decode_base64(text: str) -> bytes:
    r"""Return the bytes a text stands for; ValueError when it is not base64.

    >>> decode_base64("c2Vj\r\ncmV0\n")
    b'secret'
    """
    return base64.b64decode(text.translate(_LINE_ENDS), validate=True)
