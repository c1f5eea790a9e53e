"""``hub-restore``: bring a hub back from its object store; the verbs are in `tools.hubrestore`."""

from tools.hubrestore.cli import cli, main

__all__ = ["cli", "main"]

if __name__ == "__main__":
    main()
