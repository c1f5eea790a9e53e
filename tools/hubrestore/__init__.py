"""The verbs of ``hub-restore``: options, printing and exit codes; the work is `snapshot`'s."""
