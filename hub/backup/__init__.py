"""Running snapshots beside serving: the start-up decision, shipping, fencing, metrics."""
