"""Kinds as data and one generic engine over them."""
