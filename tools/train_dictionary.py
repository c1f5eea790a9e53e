"""Train the built-in compression dictionary of the store.

The samples come from `tools.sample_fleet`, without their noise; the result is committed as
``hub/store/_generated/builtin-1.zdict`` and never retrained in place: another dictionary takes
another number.

    python -m tools.train_dictionary hub/store/_generated/builtin-1.zdict
"""

from pathlib import Path

import click
import zstandard

from tools.sample_fleet import samples

DICTIONARY_BYTES = 64 << 10
CLUSTERS = 200


def train(size: int = DICTIONARY_BYTES) -> bytes:
    """Return a dictionary of at most `size` bytes trained on the samples."""
    documents: list[bytes | bytearray | memoryview] = []
    documents.extend(samples(clusters=CLUSTERS, seed=1, blobs=0.01))
    trained = zstandard.train_dictionary(size, documents, level=3)
    return trained.as_bytes()


def ratio(dictionary: bytes | None, documents: list[bytes]) -> float:
    """Return how many times smaller the documents become, one by one, at level 3."""
    digested = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    compress = zstandard.ZstdCompressor(level=3, dict_data=digested).compress
    return sum(map(len, documents)) / sum(len(compress(each)) for each in documents)


@click.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
def main(output: Path) -> None:
    """Train the dictionary and write it to OUTPUT."""
    dictionary = train()
    output.write_bytes(dictionary)
    fresh = samples(clusters=20, seed=2)
    print(
        f"{output}: {len(dictionary)} bytes; on {len(fresh)} unseen objects "
        f"{ratio(dictionary, fresh):.2f} against {ratio(None, fresh):.2f} without"
    )


if __name__ == "__main__":
    main()
