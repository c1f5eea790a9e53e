"""Hublet: a compact multi-cluster hub. See README.md; the layout is in docs/architecture.md."""
