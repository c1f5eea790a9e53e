"""Go's patterns mean here what they mean there."""

import pytest

from hub.meta.schema.regex import PatternError, compile_go


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        ("(?m)^a$", "b\na", True),
        (r"^a\z", "a", True),
        (r"\d", "٣", False),
        (r"^\w+$", "é", False),
        (r"^\pL+$", "éß", True),
        (r"^\p{Lu}$", "é", False),
        (r"^\PL$", "1", True),
        (r"^[^\p{^L}]$", "a", True),
        ("^[[:alpha:]_]+$", "ab_", True),
        ("^[[:^digit:]]$", "1", False),
        ("(?i)^a|^b", "B", True),
        ("x(?i)a|b", "B", True),
        ("x(?i)a|b", "Xa", False),
        ("((?i)a)b", "AB", False),
        ("(?i)^É$", "é", True),
        (r"^é\b", "é", False),
        ("(?m:^a$)|^b$", "b\n", False),
        ("(?i:a)b", "Ab", True),
        ("(?s)^a.b$", "a\nb", True),
        ("^a.b$", "a\nb", False),
        ("(?P<n>a)b", "ab", True),
        ("(?<n>a)b", "ab", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        (r"^\x41\x{1F600}\101$", "A😀A", True),
        ("^a{,2}$", "a{,2}", True),
        ("^[]a]$", "]", True),
        ("^[a-]$", "-", True),
        (r"^[a\-z]$", "b", False),
        (r"^[\d-z]$", "-", True),
        ("^[a||b]$", "|", True),
        ("^[a&&b]$", "&", True),
        ("^*a", "a", True),
        (r"^\s$", "\v", False),
        (r"^[\s]$", "\f", True),
        ("a{2}?b", "aab", True),
    ],
)
def test_a_pattern_matches_as_in_go(pattern: str, text: str, *, matches: bool) -> None:
    assert bool(compile_go(pattern).search(text)) is matches


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*+?", "invalid nested repetition operator: `*+?`"),
        ("(?i)*?", "missing argument to repetition operator: `*?`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000}`"),
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_a_pattern_go_refuses_is_refused_in_its_words(pattern: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_go(pattern)
    assert str(caught.value) == f"error parsing regexp: {message}"
