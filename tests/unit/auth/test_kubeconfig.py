import base64
from pathlib import Path

import pytest
import yaml

from hub.auth.authority import serving_names
from hub.auth.identity import create_identity
from hub.auth.kubeconfig import Access, Credential, render_kubeconfig
from tests.unit.auth.support import NOW, VirtualClock

URL = "https://hub.test:6443"
ACCESS = Access(URL, "CA TEXT\n", "hublet-1")


def test_a_client_certificate_kubeconfig_holds_everything_inline() -> None:
    identity = create_identity(URL, VirtualClock(), names=serving_names(URL))
    admin = identity.mint_admin(NOW)
    access = Access(URL, identity.serving_ca.cert_pem, identity.context_cluster)
    config = yaml.safe_load(render_kubeconfig(access, Credential("admin", client=admin)))
    assert (config["kind"], config["apiVersion"]) == ("Config", "v1")
    (cluster,), (user,), (context,) = config["clusters"], config["users"], config["contexts"]
    assert cluster["name"] == context["context"]["cluster"] == identity.context_cluster
    assert cluster["cluster"]["server"] == URL
    ca = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    assert ca == identity.serving_ca.cert_pem
    assert user["name"] == context["context"]["user"] == "admin"
    data = user["user"]
    assert base64.b64decode(data["client-certificate-data"]).decode() == admin.cert_pem
    assert base64.b64decode(data["client-key-data"]).decode() == admin.key_pem
    assert config["current-context"] == context["name"]
    assert "namespace" not in context["context"]


def test_a_token_kubeconfig_holds_the_token_and_the_namespace() -> None:
    text = render_kubeconfig(ACCESS, Credential("boot", token="abc.def"), namespace="ns")
    config = yaml.safe_load(text)
    assert config["users"] == [{"name": "boot", "user": {"token": "abc.def"}}]
    assert config["contexts"][0]["context"]["namespace"] == "ns"


def test_a_token_that_looks_like_a_number_stays_text() -> None:
    text = render_kubeconfig(ACCESS, Credential("boot", token="123456.1234567890123456"))
    assert yaml.safe_load(text)["users"][0]["user"]["token"] == "123456.1234567890123456"


def test_the_kubernetes_client_reads_it(tmp_path: Path) -> None:
    from kubernetes import config

    identity = create_identity(URL, VirtualClock(), names=serving_names(URL))
    access = Access(URL, identity.serving_ca.cert_pem, identity.context_cluster)
    file = tmp_path / "admin.kubeconfig"
    admin = Credential("admin", client=identity.mint_admin(NOW))
    file.write_text(render_kubeconfig(access, admin))
    contexts, active = config.list_kube_config_contexts(str(file))
    assert active["context"]["cluster"] == identity.context_cluster
    assert contexts == [active]


def test_a_credential_is_one_thing_and_shows_no_secret() -> None:
    with pytest.raises(ValueError, match="either"):
        Credential("u")
    assert "abc.def" not in repr(Credential("u", token="abc.def"))
