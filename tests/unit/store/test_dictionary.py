"""The built-in dictionary and the script that trains it."""

import json

import pytest
import zstandard

from hub.store.dictionary import (
    BUILTIN,
    Dictionaries,
    builtin_dictionary,
    encode_dictionary,
)
from hub.store.errors import Corrupt
from tools.sample_fleet import samples
from tools.train_dictionary import ratio


def test_the_shipped_dictionary_halves_what_plain_compression_leaves() -> None:
    unseen = samples(clusters=10, seed=7)
    assert ratio(builtin_dictionary(), unseen) > 2 * ratio(None, unseen)


def test_the_shipped_dictionary_is_a_trained_one_of_the_right_size() -> None:
    dictionary = builtin_dictionary()
    assert zstandard.ZstdCompressionDict(dictionary).dict_id() != 0
    assert 32 << 10 <= len(dictionary) <= 64 << 10


def test_a_seed_gives_the_same_samples() -> None:
    assert samples(clusters=2, seed=3) == samples(clusters=2, seed=3)
    assert samples(clusters=2, seed=3) != samples(clusters=2, seed=4)


def test_the_samples_cover_what_a_hub_stores() -> None:
    kinds = {json.loads(each)["kind"] for each in samples(clusters=1, seed=1)}
    assert kinds >= {
        "ManagedCluster",
        "ManagedClusterAddOn",
        "ManifestWork",
        "Namespace",
        "Lease",
        "CertificateSigningRequest",
        "ClusterRole",
        "RoleBinding",
        "Secret",
        "Event",
    }


def test_the_highest_number_compresses() -> None:
    builtin = encode_dictionary(builtin_dictionary())
    assert Dictionaries({BUILTIN: builtin, 7: builtin}).current == 7
    assert Dictionaries({}).current == 0


def test_a_stored_dictionary_of_an_unknown_form_is_refused() -> None:
    with pytest.raises(Corrupt, match="dictionary 1"):
        Dictionaries({BUILTIN: b"\x07" + builtin_dictionary()})
