"""What makes a hub the same hub wherever it runs: its id, its CAs and its signing key.

Owns the value that the composition root seals into the store, so that a hub started from a copy,
from the bucket or on another machine is believed by the agents and tokens of the old one.
Invariants: both CAs, the leaf's key, the ServiceAccount signing key, the issuer and the context
cluster name never change after `create_identity`; only the leaf's certificate is issued anew, under
the same CA and key, when the names change or its life runs out.

Why the context cluster name is part of it: an agent registers again only when its bootstrap
kubeconfig differs from the one in use in server, CA or this name (OCM
pkg/registration/register/common.go), so a hub built afresh must have another one and a hub restored
must have the same.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cryptography.exceptions import InvalidSignature

from hub.auth.authority import (
    create_authority,
    issue_serving_leaf,
    names_of,
)
from hub.auth.certificates import mint_client
from hub.auth.errors import IdentityError
from hub.auth.keypair import KeyPair, load_private_key, new_private_key
from hub.auth.user import MASTERS
from hub.clock import Clock
from hub.meta import Obj

BUNDLE_VERSION = 1
ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class HubIdentity:
    """Everything agents, kubeconfigs and tokens depend on. Key material stays out of its repr."""

    hub_id: str
    serving_ca: KeyPair
    client_ca: KeyPair
    leaf: KeyPair
    signing_key_pem: str = field(repr=False)
    issuer: str
    context_cluster: str

    def with_leaf_for(self, names: Sequence[str], now: dt.datetime) -> "HubIdentity":
        """Return this identity with a leaf for exactly `names` that has a third of its life left.

        It is `self` when the present leaf will do, so ``is not`` tells whether there is something
        to store.
        """
        if set(names) == set(names_of(self.leaf.certificate())) and not self._is_leaf_old(now):
            return self
        leaf = issue_serving_leaf(self.serving_ca, self.leaf.key_pem, names=names, now=now)
        return replace(self, leaf=leaf)

    def mint_admin(self, now: dt.datetime) -> KeyPair:
        """Return a fresh client certificate for `admin` in system:masters, valid for a year."""
        return mint_client(ADMIN, [MASTERS], self.client_ca, now=now)

    def to_bundle(self) -> Obj:
        """Return the JSON form, private keys included: for the sealed store only."""
        return {
            "version": BUNDLE_VERSION,
            "hubID": self.hub_id,
            "servingCA": _dump(self.serving_ca),
            "clientCA": _dump(self.client_ca),
            "leaf": _dump(self.leaf),
            "signingKey": self.signing_key_pem,
            "issuer": self.issuer,
            "contextCluster": self.context_cluster,
        }

    def _is_leaf_old(self, now: dt.datetime) -> bool:
        leaf = self.leaf.certificate()
        life = leaf.not_valid_after_utc - leaf.not_valid_before_utc
        return leaf.not_valid_after_utc - now < life / 3


def create_identity(
    url: str, clock: Clock, *, names: Sequence[str], context_cluster: str = ""
) -> HubIdentity:
    """Make a new hub's identity.

    `names` come from `hub.auth.authority.serving_names`. The issuer is `url` as it is now: it
    stays, even if the hub is later reached elsewhere. The default context cluster name is made from
    the hub's id.
    """
    hub_id, now = clock.uid(), clock.now()
    serving_ca = create_authority(f"hublet-serving@{hub_id}", now)
    return HubIdentity(
        hub_id=hub_id,
        serving_ca=serving_ca,
        client_ca=create_authority(f"hublet-client@{hub_id}", now),
        leaf=issue_serving_leaf(serving_ca, new_private_key(), names=names, now=now),
        signing_key_pem=new_private_key(),
        issuer=url.rstrip("/"),
        context_cluster=context_cluster or f"hublet-{hub_id[:8]}",
    )


def from_bundle(bundle: Obj) -> HubIdentity:
    """Read what `to_bundle` wrote; raises `IdentityError` if keys and certificates do not match."""
    if bundle.get("version") != BUNDLE_VERSION:
        raise IdentityError(
            f"identity version {bundle.get('version')!r} is not {BUNDLE_VERSION}: "
            "start the release that wrote this store, or a newer one"
        )
    identity = HubIdentity(
        hub_id=_text(bundle, "hubID"),
        serving_ca=_load(bundle, "servingCA"),
        client_ca=_load(bundle, "clientCA"),
        leaf=_load(bundle, "leaf"),
        signing_key_pem=_text(bundle, "signingKey"),
        issuer=_text(bundle, "issuer"),
        context_cluster=_text(bundle, "contextCluster"),
    )
    load_private_key(identity.signing_key_pem)
    try:
        identity.leaf.certificate().verify_directly_issued_by(identity.serving_ca.certificate())
    except (InvalidSignature, ValueError, TypeError) as error:
        raise IdentityError("identity field leaf was not issued by servingCA") from error
    return identity


def _dump(pair: KeyPair) -> Obj:
    return {"certificate": pair.cert_pem, "key": pair.key_pem}


def _load(bundle: Obj, field_name: str) -> KeyPair:
    part = bundle.get(field_name)
    if not isinstance(part, dict):
        raise IdentityError(f"identity field {field_name} is missing")
    pair = KeyPair(_text(part, "certificate"), _text(part, "key"))
    try:
        certificate = pair.certificate()
    except ValueError as error:
        raise IdentityError(f"identity field {field_name} holds no PEM certificate") from error
    if certificate.public_key() != pair.private_key().public_key():
        raise IdentityError(f"identity field {field_name}: the key is not the certificate's")
    return pair


def _text(bundle: Obj, field_name: str) -> str:
    value = bundle.get(field_name)
    if not isinstance(value, str) or not value:
        raise IdentityError(f"identity field {field_name} is missing")
    return value
