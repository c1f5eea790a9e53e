"""Tests of hub.auth."""
