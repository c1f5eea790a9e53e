"""Numbers out of a run's counters: quantiles, rates, latencies. Pure."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from hub.meta import Obj
from tools.simulate.tally import RequestKey, Tally


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the sorted `values` do not exceed; 0 when there is none.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.0
    """
    if not values:
        return 0.0
    rank = -(-len(values) * round(share * 1000) // 1000)  # ceiling, exact for shares in thousandths
    return values[max(rank, 1) - 1]


def spread(values: Sequence[float], *, factor: float = 1.0, digits: int = 3) -> Obj:
    """Return count, quantiles and maximum of some times."""
    ordered = sorted(values)
    shares = {f"p{share}": quantile(ordered, share / 100) for share in (50, 95, 99)}
    found = {**shares, "max": ordered[-1] if ordered else 0.0}
    return {
        "count": len(ordered),
        **{name: round(value * factor, digits) for name, value in found.items()},
    }


def milliseconds(values: Sequence[float]) -> Obj:
    """Return the spread of times in seconds as milliseconds."""
    return spread(values, factor=1000, digits=2)


def latencies(tally: Tally) -> Obj:
    """Return the spread of every verb."""
    by_verb: defaultdict[str, list[float]] = defaultdict(list)
    for (verb, _), values in tally.latencies_s.items():
        by_verb[verb] += values
    return {verb: milliseconds(values) for verb, values in sorted(by_verb.items())}


def lease_puts(tally: Tally) -> Obj:
    """Return the spread of Lease PUTs, until all was in order and from then on."""
    key = ("update", "leases")
    values = tally.latencies_s.get(key, ())
    mark = tally.before_steady
    count = mark.latencies.get(key, 0) if mark else len(values)
    return _phases(values, count)


def deliveries(tally: Tally) -> Obj:
    """Return the spread of the time from a work's creation to its agent's watch, likewise."""
    mark = tally.before_steady
    count = mark.deliveries if mark else len(tally.deliveries_s)
    return _phases(tally.deliveries_s, count)


def _phases(values: Sequence[float], joining: int) -> Obj:
    return {"joining": milliseconds(values[:joining]), "steady": milliseconds(values[joining:])}


def request_rates(tally: Tally, *, joining_s: float, steady_s: float) -> Obj:
    """Return requests a second, as resource -> verb, until all was in order and from then on."""
    mark = tally.before_steady
    joining = mark.requests if mark else tally.requests
    steady = tally.requests - mark.requests if mark else Counter[RequestKey]()
    return {"joining": _rates(joining, joining_s), "steady": _rates(steady, steady_s)}


def _rates(counted: Counter[RequestKey], seconds: float) -> Obj:
    tree: defaultdict[str, dict[str, float]] = defaultdict(dict)
    if seconds > 0:
        for verb, resource in sorted({key[:2] for key in counted}):
            total = sum(n for key, n in counted.items() if key[:2] == (verb, resource))
            tree[resource][verb] = round(total / seconds, 2)
    return {resource: dict(verbs) for resource, verbs in sorted(tree.items())}


def request_counts(counted: Counter[RequestKey]) -> Obj:
    """Return counts as resource -> verb -> status -> count."""
    tree: defaultdict[str, defaultdict[str, dict[str, int]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for (verb, resource, status), count in sorted(counted.items()):
        tree[resource][verb][status] = count
    return {resource: dict(verbs) for resource, verbs in sorted(tree.items())}


def refusals(counted: Counter[RequestKey]) -> Obj:
    """Return the answers that were no success, and requests without one, by kind."""
    return {
        f"{verb} {resource} {status}": count
        for (verb, resource, status), count in sorted(counted.items())
        if status not in {"200", "201"}
    }
