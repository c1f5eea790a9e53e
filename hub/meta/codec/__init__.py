"""Bytes to objects and back: one module a format."""
