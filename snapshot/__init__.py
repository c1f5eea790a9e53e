"""Snapshots: the hub's state in a bucket, and the way back.

Owns segments, the chain they form, the epoch that fences writers, shipping, restore and
verification. It knows the store's public types only; it neither serves nor schedules (`hub.backup`
does). Formats: docs/snapshot-format.md.
"""
