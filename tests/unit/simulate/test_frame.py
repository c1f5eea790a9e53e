"""Watch events out of chunks of any size."""

import pytest

from tools.simulate.frame import LineFrames, MalformedError, parse_event

_ADDED = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}\n'
_END = (
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",'
    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)


@pytest.mark.parametrize("size", [1, 2, 7, 60, 1000])
def test_events_come_whole_from_chunks_of_any_size(size: int) -> None:
    stream, frames = _ADDED + _END + _ADDED, LineFrames()
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    events = [event for chunk in chunks for event in frames.feed(chunk)]
    frames.close()
    assert [event.type for event in events] == ["ADDED", "BOOKMARK", "ADDED"]
    assert [event.ends_initial_events for event in events] == [False, True, False]


def test_a_stream_that_ends_inside_an_event_is_malformed() -> None:
    frames = LineFrames()
    assert frames.feed(_ADDED[:-1]) == []
    with pytest.raises(MalformedError, match="inside an event"):
        frames.close()


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[]",
        b'{"type":"ADDED"}',
        b'{"type":"SURPRISE","object":{"metadata":{"resourceVersion":"1"}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}',
    ],
)
def test_what_is_no_watch_event_is_malformed(line: bytes) -> None:
    with pytest.raises(MalformedError):
        parse_event(line)


def test_an_error_event_needs_no_revision() -> None:
    event = parse_event(b'{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410}}')
    assert event.object["code"] == 410
