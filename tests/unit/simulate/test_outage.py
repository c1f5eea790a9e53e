"""An outage lasts from an agent's first lost watch until all of them are open again."""

from array import array

from tools.simulate.outage import Outage


def test_an_outage_ends_with_the_last_watch_that_is_back() -> None:
    lengths_s = array("d")
    outage = Outage(lengths_s)
    outage.lost("works", 10.0)
    outage.lost("clusters", 10.5)
    outage.opened("works", 11.0)
    outage.lost("works", 12.0)
    outage.opened("works", 12.5)
    assert not lengths_s
    outage.opened("clusters", 13.0)
    assert list(lengths_s) == [3.0]
    outage.lost("works", 20.0)
    outage.opened("works", 20.25)
    assert list(lengths_s) == [3.0, 0.25]


def test_a_watch_that_opens_without_having_been_lost_is_no_outage() -> None:
    lengths_s = array("d")
    Outage(lengths_s).opened("works", 1.0)
    assert not lengths_s
