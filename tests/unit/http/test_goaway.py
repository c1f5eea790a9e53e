from hypothesis import given
from hypothesis import strategies as st

from hub.http.codecs.goaway import GoawaySplitter, goaway_frame

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, 0, 0, 0, 0, 1]) + payload


def split_in(splitter: GoawaySplitter, data: bytes, size: int) -> tuple[bytes, list[int]]:
    passed, named = b"", []
    for at in range(0, len(data), size):
        frames, last = splitter.split(data[at : at + size])
        passed += frames
        named += last
    return passed, named


@given(
    kinds=st.lists(st.tuples(st.integers(0, 12).filter(lambda k: k != 7), st.binary(max_size=30))),
    at=st.integers(0, 5),
    size=st.integers(1, 50),
)
def test_only_goaways_are_taken_out_however_the_bytes_arrive(
    kinds: list[tuple[int, bytes]], at: int, size: int
) -> None:
    frames = [frame(kind, payload) for kind, payload in kinds]
    with_goaway = [*frames[:at], goaway_frame(0x80000009), *frames[at:]]
    data = PREFACE + b"".join(with_goaway)
    splitter = GoawaySplitter(preface_bytes=len(PREFACE))
    assert split_in(splitter, data, size) == (PREFACE + b"".join(frames), [9])


def test_a_goaway_with_debug_data_is_taken_out_whole() -> None:
    splitter = GoawaySplitter(preface_bytes=0)
    data = frame(7, (5).to_bytes(4, "big") + bytes(4) + b"goodbye") + frame(6, bytes(8))
    assert splitter.split(data) == (frame(6, bytes(8)), [5])


def test_a_malformed_goaway_is_left_to_the_library() -> None:
    splitter = GoawaySplitter(preface_bytes=0)
    assert splitter.split(frame(7, b"short")) == (frame(7, b"short"), [])


def test_a_frame_too_long_ends_the_stream_of_frames_at_its_head() -> None:
    splitter = GoawaySplitter(preface_bytes=0)
    longest, too_long = frame(0, bytes(16_384)), frame(0, bytes(16_385))
    assert splitter.split(longest) == (longest, [])
    assert splitter.split(longest + too_long[:9]) == (longest, [])
    assert splitter.is_overlong
    assert splitter.split(goaway_frame(1)) == (b"", [])
