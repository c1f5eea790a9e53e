"""Structural schemas of custom resources: parse, check, prune, default, validate, publish."""
