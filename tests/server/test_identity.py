"""A hub's identity across starts: what stays whatever happens, and what a changed URL changes."""

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import jwt
from cryptography import x509

from hub.http.tls import client_context
from tests.hubs import Api, InProcess, running_hub
from tests.server.support import anonymous, cluster_access, config_maps, named, token_for

NOTHING_SHIPPED = "nothing is shipped: give --object-store to have the state in a bucket"
CLOSED = (
    "/",
    "/api",
    "/apis",
    "/metrics",
    "/openapi/v3",
    "/openid/v1/jwks",
    "/.well-known/openid-configuration",
    "/healthz/ping",
    "/nosuch",
    config_maps("default"),
)
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a client sees of a hub before it asks anything."""

    leaf: x509.Certificate
    ca: bytes

    @property
    def names(self) -> set[str]:
        found = self.leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        addresses = [str(each) for each in found.get_values_for_type(x509.IPAddress)]
        return {*found.get_values_for_type(x509.DNSName), *addresses}


async def look(hub: InProcess, port: int) -> Shown:
    ca = cluster_access(hub)[1]

    def shake() -> bytes:
        plain = socket.create_connection(("127.0.0.1", port), timeout=10)
        with client_context(ca).wrap_socket(plain, server_hostname="127.0.0.1") as sock:
            der = sock.getpeercert(binary_form=True)
        assert der is not None
        return der

    return Shown(x509.load_der_x509_certificate(await asyncio.to_thread(shake)), ca)


async def test_a_changed_url_re_issues_the_leaf_warns_and_changes_nothing_else(
    tmp_path: Path, free_port: int
) -> None:
    data, port = tmp_path / "data", free_port
    old, new = f"https://localhost:{port}", f"https://hub.example.com:{port}"
    async with running_hub(data, port=port, url=old) as hub:
        before, agent = await look(hub, port), tmp_path / "agent.kubeconfig"
        agent.write_text(hub.kubeconfig.read_text())
        token = await token_for(hub, "default", "robot")
        keys = await hub.admin.get("/openid/v1/jwks")
        assert hub.warnings == (NOTHING_SHIPPED,)
    async with running_hub(data, port=port, url=new) as hub:
        shipped, moved = hub.warnings
        assert shipped == NOTHING_SHIPPED
        assert moved.startswith(f"this hub was {old} and now says {new}: cluster-info, join ")
        assert "agents that joined hold the old one" in moved
        after = await look(hub, port)
        assert after.leaf.serial_number != before.leaf.serial_number
        assert after.leaf.public_key() == before.leaf.public_key()
        assert after.ca == before.ca
        assert "hub.example.com" in after.names - before.names
        assert {"localhost", "127.0.0.1"} <= after.names & before.names
        assert await user_of(Api.from_kubeconfig(agent)) == "admin"  # with all that it had before
        robot = Api.connect(old, ca=before.ca, token=token)
        assert await user_of(robot) == "system:serviceaccount:default:robot"
        api = Api.from_kubeconfig(agent)
        assert await api.get("/openid/v1/jwks") == keys
        about = await api.get("/.well-known/openid-configuration")
        assert (about["issuer"], about["jwks_uri"]) == (old, f"{new}/openid/v1/jwks")
        info = await api.get("/api/v1/namespaces/kube-public/configmaps/cluster-info")
        assert new in info["data"]["kubeconfig"]
        await api.close()
    async with running_hub(data, port=port) as hub:
        assert (hub.url, hub.warnings) == (new, (NOTHING_SHIPPED,))
        assert (await look(hub, port)).leaf == after.leaf


async def test_a_url_in_place_of_the_listen_address_is_a_change_too(
    tmp_path: Path, free_port: int
) -> None:
    """Nobody gave the first one, and agents hold it all the same."""
    async with running_hub(tmp_path / "data", port=free_port) as hub:
        old = hub.url
        assert hub.warnings == (NOTHING_SHIPPED,)
    new = f"https://hub.example.com:{free_port}"
    async with running_hub(tmp_path / "data", port=free_port, url=new) as hub:
        assert any(f"this hub was {old} and now says {new}" in each for each in hub.warnings)


async def user_of(api: Api) -> str:
    try:
        name = (await api.create(REVIEW, {}))["status"]["userInfo"]["username"]
        assert isinstance(name, str)
        return name
    finally:
        await api.close()


async def test_a_token_is_bound_to_its_account_and_not_to_its_name(tmp_path: Path) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    async with running_hub(tmp_path / "data") as hub:
        token = await token_for(hub, "default", "robot")
        robot = anonymous(hub, token=token)
        try:
            assert (await robot.call("POST", REVIEW, {})).status == 201
            assert (await hub.admin.call("DELETE", f"{accounts}/robot")).status == 200
            assert (await robot.call("POST", REVIEW, {})).status == 401
            await hub.admin.create(accounts, named("robot"))
            assert (await robot.call("POST", REVIEW, {})).status == 401
        finally:
            await robot.close()
        again = await hub.admin.create(f"{accounts}/robot/token", {})
        api = anonymous(hub, token=again["status"]["token"])
        assert await user_of(api) == "system:serviceaccount:default:robot"


async def test_the_keys_and_what_points_to_them_are_as_kubernetes_has_them(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        token = await token_for(hub, "default", "robot")
        found = await hub.admin.call("GET", "/.well-known/openid-configuration")
        assert (found.status, found.headers["content-type"]) == (200, "application/json")
        assert found.headers["cache-control"] == "public, max-age=3600"
        about = found.obj()
        assert about == {
            "issuer": hub.url,
            "jwks_uri": f"{hub.url}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }
        published = await hub.admin.call("GET", urlsplit(about["jwks_uri"]).path)
        assert published.headers["content-type"] == "application/jwk-set+json"
        assert published.headers["cache-control"] == "public, max-age=3600"
        (key,) = published.obj()["keys"]
        assert set(key) == {"use", "kty", "kid", "alg", "crv", "x", "y"}
        claims = jwt.decode(token, jwt.PyJWK(key), ["ES256"], audience=hub.url, issuer=hub.url)
        assert claims["kubernetes.io"]["serviceaccount"]["name"] == "robot"


async def test_anybody_may_read_health_and_version_and_nothing_else(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        nobody = anonymous(hub)
        try:
            for path in ("/healthz", "/livez", "/readyz", "/version", "/version/"):
                assert (await nobody.call("GET", path)).status == 200, path
            for path in CLOSED:
                assert (await nobody.call("GET", path)).status == 403, path
        finally:
            await nobody.close()
