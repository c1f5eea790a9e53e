"""What all agents of a run share: the way to the hub, the counters, clocks, chance, identities."""

import random
import ssl
import time
from dataclasses import dataclass, field

from hub.auth.subject import Subject
from hub.clock import Clock
from hub.http.tls import client_context
from tools.simulate.certificate import certificate_faults
from tools.simulate.identity import Identity, IdentityStore
from tools.simulate.session import Route, Session
from tools.simulate.tally import Tally
from tools.simulate.writes import Writes

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
    authority: bytes = b""
    """PEM: the CA of client certificates, or a certificate that it has signed."""
    trusting: ssl.SSLContext = field(init=False)
    """What TLS needs without a certificate; the same for all."""
    _writes: dict[str, Writes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "trusting", client_context(self.ca_pem))

    def writes(self, cluster: str) -> Writes:
        """Return the writes to the works of `cluster`: its agent's and its administrator's."""
        if cluster not in self._writes:
            self._writes[cluster] = Writes(time.monotonic, self.tally.deliveries_s.append)
        return self._writes[cluster]

    def check_certificate(self, cert_pem: str, key_pem: str, subject: Subject) -> None:
        """Count what is wrong with a certificate that the hub has signed."""
        authority = self.ca_pem + b"\n" + self.authority
        for fault in certificate_faults(
            cert_pem, key_pem, subject=subject, authority=authority, now=self.clock.now()
        ):
            text = f"the certificate of {subject.common_name}: {fault}"
            self.tally.protocol_error(text, kind="client certificate")

    def session(self, agent: str, *, token: str) -> Session:
        """Return a session that speaks with a bearer token."""
        return Session(self.route, self.trusting, tally=self.tally, agent=agent, token=token)

    def tls_of(self, identity: Identity) -> ssl.SSLContext:
        """Return the TLS context that shows `identity`'s certificate."""
        return client_context(self.ca_pem, identity.cert_pem.encode(), identity.key_pem.encode())

    def now_text(self) -> str:
        """Return the time as Kubernetes writes it, whole seconds."""
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def agent_name(self) -> str:
        """Return a fresh agent name of five letters, as OCM's agent draws it."""
        return "".join(self.rng.choice(_LETTERS) for _ in range(5))
