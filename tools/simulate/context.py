"""What all agents of a run share: the way to the hub, the counters, clocks, chance, identities."""

import random
import ssl
from dataclasses import dataclass, field

from hub.clock import Clock
from hub.http.tls import client_context
from tools.simulate.identity import Identity, IdentityStore
from tools.simulate.session import Route, Session
from tools.simulate.tally import Tally

REGISTRATION_AGENT = "registration/v0.0.0 (linux/amd64) kubernetes/$Format"
WORK_AGENT = "work/v0.0.0 (linux/amd64) kubernetes/$Format"

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings of an agent."""

    route: Route
    ca_pem: bytes = field(repr=False)
    tally: Tally
    rng: random.Random
    clock: Clock
    identities: IdentityStore

    def session(self, agent: str, *, token: str) -> Session:
        """Return a session that speaks with a bearer token."""
        tls = client_context(self.ca_pem)
        return Session(self.route, tls, tally=self.tally, agent=agent, token=token)

    def tls_of(self, identity: Identity) -> ssl.SSLContext:
        """Return the TLS context that shows `identity`'s certificate."""
        return client_context(self.ca_pem, identity.cert_pem.encode(), identity.key_pem.encode())

    def now_text(self) -> str:
        """Return the time as Kubernetes writes it, whole seconds."""
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def agent_name(self) -> str:
        """Return a fresh agent name of five letters, as OCM's agent draws it."""
        return "".join(self.rng.choice(_LETTERS) for _ in range(5))
