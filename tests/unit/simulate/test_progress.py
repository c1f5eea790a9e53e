"""One line drawn again on a terminal, plain lines elsewhere."""

import io

from tools.simulate.progress import DRAW_EVERY_S, LINE_EVERY_S, Progress, progress_on


class Screen:
    """What is written, and a clock."""

    def __init__(self, *, is_terminal: bool, columns: int = 80) -> None:
        self.text, self.clock_s = "", 0.0
        self.progress = Progress(
            self.write, is_terminal=is_terminal, columns=columns, now_s=lambda: self.clock_s
        )

    def write(self, text: str) -> None:
        self.text += text


def test_a_terminal_has_one_line_that_is_drawn_again_and_makes_room_for_what_is_said() -> None:
    screen = Screen(is_terminal=True)
    screen.progress.show(lambda: "  joined 1/4", 0.25)
    screen.clock_s = DRAW_EVERY_S
    screen.progress.show(lambda: "  joined 2/4", 0.5)
    assert screen.text.count("\n") == 0
    assert screen.text.split("\r\x1b[K") == [
        "",
        "[######..................] joined 1/4",
        "[############............] joined 2/4",
    ]
    screen.progress.say("all in order")
    assert screen.text.endswith("\r\x1b[Kall in order\n")
    screen.progress.say("more")
    assert screen.text.endswith("in order\nmore\n")


def test_a_line_never_wraps_and_a_bar_never_overflows() -> None:
    screen = Screen(is_terminal=True, columns=30)
    screen.progress.show(lambda: "a long line of text", 7.0)
    assert screen.text == "\r\x1b[K[########################] a "


def test_elsewhere_there_are_plain_lines_now_and_then() -> None:
    screen, asked = Screen(is_terminal=False), list[float]()

    def line() -> str:
        asked.append(screen.clock_s)
        return f"line {len(asked)}"

    for at_s in (0.0, 0.2, LINE_EVERY_S - 0.1, LINE_EVERY_S):
        screen.clock_s = at_s
        screen.progress.show(line, 0.5)
    assert screen.text == "line 1\nline 2\n"
    assert asked == [0.0, LINE_EVERY_S], "a line that is not shown is not made"


def test_a_file_is_no_terminal() -> None:
    stream = io.StringIO()
    progress_on(stream).show(lambda: "line", 0.0)
    assert stream.getvalue() == "line\n"
