"""Log output: JSON lines on stderr, event names in snake_case, never bodies or credentials."""

import logging
import sys

import structlog

_CHATTY = ("boto3", "botocore", "s3transfer", "urllib3", "h2", "hpack")
"""Libraries whose lines are no JSON, and in which requests and credentials may stand: hpack tells
at the level debug of every header it reads, bearer tokens too.
"""


def configure_logs(level: str) -> None:
    """Send records of `level` and above to stderr as JSON, the standard library's too."""
    number = getattr(logging, level.upper(), logging.INFO)
    logging.basicConfig(level=number, stream=sys.stderr, format="%(message)s")
    for library in _CHATTY:
        logging.getLogger(library).setLevel(max(number, logging.WARNING))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
