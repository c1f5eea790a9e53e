"""A throw-away CA with server and client certificates, valid, expired and foreign."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pem:
    cert: bytes
    key: bytes

    def der(self) -> bytes:
        certificate = x509.load_pem_x509_certificate(self.cert)
        return certificate.public_bytes(serialization.Encoding.DER)


class Authority:
    def __init__(self, common_name: str = "test-ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = self._builder(self._name, self._key, age=DAY, life=DAY)
        ca = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        ca = ca.add_extension(usage, critical=True)
        self.cert = _pem(ca.sign(self._key, hashes.SHA256()))

    def server(self) -> Pem:
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.IPAddress(ip_address("127.0.0.1")),
        ]
        return self._issue([("CN", "localhost")], names=names)

    def client(self, subject: Sequence[tuple[str, str]], *, is_expired: bool = False) -> Pem:
        """Issue for `subject`, ("CN" or "O", value) pairs in order."""
        return self._issue(subject, life=-DAY / 2 if is_expired else DAY)

    def _issue(
        self,
        subject: Sequence[tuple[str, str]],
        *,
        names: Sequence[x509.GeneralName] = (),
        life: dt.timedelta = DAY,
    ) -> Pem:
        key = ec.generate_private_key(ec.SECP256R1())
        oids = {"CN": NameOID.COMMON_NAME, "O": NameOID.ORGANIZATION_NAME}
        name = x509.Name([x509.NameAttribute(oids[kind], value) for kind, value in subject])
        builder = self._builder(name, key, age=DAY, life=life)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Pem(_pem(builder.sign(self._key, hashes.SHA256())), private)

    def _builder(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        age: dt.timedelta,
        life: dt.timedelta,
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - age)
            .not_valid_after(now + life)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
