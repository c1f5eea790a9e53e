"""What may be written into a ManifestWork and a ManifestWorkReplicaSet, beyond their shape.

In-process form of OCM's admission webhooks (pkg/work/webhook): manifests are bounded and
unambiguous, and who lets a work run as another ServiceAccount needs a right of its own.
"""

from hub.auth.rbac import Authorizer
from hub.auth.user import Attributes, User
from hub.fleet.kinds import MAX_MANIFESTS_BYTES, WORK_GROUP
from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.errors import bad_request
from hub.registry.objects import meta_of
from hub.registry.strategy import Occasion

LABEL_BYTES = 63
"""The longest value of a label: a replica set marks its works with namespace and name in one."""


class WorkAdmission:
    """The rules for ManifestWork."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, new: Obj, old: Obj | None, occasion: Occasion) -> None:
        """Look at the manifests, and at the executor when it is another than before.

        :raises ApiError: 400, as OCM's webhook (also for a missing right)
        """
        spec = new.get("spec") or {}
        check_manifests(spec.get("workload"), "spec.workload.manifests")
        executor = spec.get("executor")
        before = ((old or {}).get("spec") or {}).get("executor")
        if executor is not None and executor != before:
            self._check_executor(executor, str(meta_of(new).get("namespace") or ""), occasion.user)

    def _check_executor(self, executor: Obj, namespace: str, user: User) -> None:
        subject = executor.get("subject") or {}
        account = subject.get("serviceAccount")
        if not isinstance(account, dict):
            raise bad_request(
                "spec.executor.subject.serviceAccount: must be given for the type ServiceAccount"
            )
        place = f"{account.get('namespace') or ''}:{account.get('name') or ''}"
        asked = Attributes(
            "execute-as",
            WORK_GROUP,
            "*",
            "manifestworks",
            "",
            namespace=namespace,
            name=f"system:serviceaccount:{place}",
        )
        if not self._authorizer.authorize(user, asked).allowed:
            raise bad_request(
                f"spec.executor: user {user.name} may not have a work in {namespace} executed as "
                f"the ServiceAccount {place.replace(':', '/')}; the right is execute-as on "
                "manifestworks"
            )


def admit_replica_set(new: Obj, old: Obj | None, occasion: Occasion) -> None:  # noqa: ARG001  the seam
    """Look at the manifests of the template, and whether its works can be labelled.

    :raises ApiError: 400
    """
    template = (new.get("spec") or {}).get("manifestWorkTemplate") or {}
    check_manifests(template.get("workload"), "spec.manifestWorkTemplate.workload.manifests")
    meta = meta_of(new)
    label = f"{meta.get('namespace')}.{meta.get('name')}"
    if old is None and len(label.encode()) > LABEL_BYTES:
        raise bad_request(
            f"metadata.name: namespace and name make the label {label!r} of its works, which may "
            f"have {LABEL_BYTES} characters and has {len(label)}; shorten one of them"
        )


def check_manifests(workload: object, field: str) -> None:
    """Refuse no manifests, too many bytes, an object without a name, and one that comes twice.

    :raises ApiError: 400
    """
    manifests = workload.get("manifests") if isinstance(workload, dict) else None
    if not isinstance(manifests, list) or not manifests:
        raise bad_request(f"{field}: must hold at least one manifest")
    size = sum(len(encode(m)) for m in manifests)
    if size > MAX_MANIFESTS_BYTES:
        raise bad_request(
            f"{field}: {size} bytes exceed the limit of {MAX_MANIFESTS_BYTES}; split them over "
            "several ManifestWorks"
        )
    seen: set[tuple[str, ...]] = set()
    for position, manifest in enumerate(manifests):
        where = f"{field}[{position}]"
        found = _identity(manifest, where)
        if found in seen:
            raise bad_request(
                f"{where}: the same object stands in the work twice: {'/'.join(found)}"
            )
        seen.add(found)


def _identity(manifest: object, where: str) -> tuple[str, ...]:
    """Return what tells a manifest from the others of its work."""
    if not isinstance(manifest, dict) or not manifest.get("kind") or not manifest.get("apiVersion"):
        raise bad_request(f"{where}: needs apiVersion and kind")
    meta = manifest.get("metadata") or {}
    if not isinstance(meta, dict) or not meta.get("name"):
        raise bad_request(f"{where}.metadata.name: must be given, generateName is not supported")
    names = (manifest["apiVersion"], manifest["kind"], meta.get("namespace") or "", meta["name"])
    return tuple(map(str, names))
