"""What the fields of the built-in kinds mean, in a line each: what ``kubectl explain`` prints.

A line is ``Message: text`` or ``Message.field: text``; ``*.field`` holds for every message that has
no line of its own for the field.

>>> describe("ConfigMap.data")
'Texts by key; a key may consist of letters, digits, "-", "_" and "."'
>>> describe("Lease.nothing")
''
"""

from hub.meta.schema.definition_text import LINES

_LINES = """
Namespace: A scope for names; what stands in it goes with it
NamespaceSpec.finalizers: What must be cleaned up before the namespace goes
NamespaceStatus.phase: Active, or Terminating once it is being deleted
NamespaceStatus.conditions: What a deletion is waiting for
NamespaceCondition: One aspect of a namespace's deletion
ConfigMap: Configuration that is not secret
ConfigMap.data: Texts by key; a key may consist of letters, digits, "-", "_" and "."
ConfigMap.binaryData: Bytes by key, in base64; no key may stand in data as well
*.immutable: Whether the data can no longer be changed, only deleted
Secret: Data that is kept from those who may not read it
Secret.data: Bytes by key, in base64
Secret.stringData: Texts that are written into data; never read back
Secret.type: What the data is for, such as Opaque
ServiceAccount: An identity for programs
ServiceAccount.secrets: Secrets that programs with this identity may use
ServiceAccount.imagePullSecrets: Secrets to pull images with
ServiceAccount.automountServiceAccountToken: Whether pods get a token without asking
LocalObjectReference: Names an object in the same namespace
ObjectReference: Names an object
ObjectReference.fieldPath: Which part of the object is meant
Event: Something that happened, kept for a while
Event.involvedObject: What it happened to
Event.source: What reported it
Event.count: How often it happened
Event.firstTimestamp: When it happened first
Event.lastTimestamp: When it happened last
Event.reportingComponent: The controller that reported it
*.reportingInstance: The instance of the controller
*.reportingController: The controller that reported it
*.eventTime: When it was first observed
*.series: How it went on, when it happened several times
*.related: Another object it has to do with
*.regarding: What it happened to
*.note: What happened, for people
*.action: What was done or tried
EventSource.component: The component that reported it
EventSource.host: The node it was reported from
EventSeries.count: How often it happened up to the last time
*.lastObservedTime: When it happened last
*.deprecatedSource: What reported it, in the form of the core group
*.deprecatedFirstTimestamp: When it happened first, in the form of the core group
*.deprecatedLastTimestamp: When it happened last, in the form of the core group
*.deprecatedCount: How often it happened, in the form of the core group
events.Event: Something that happened, kept for a while
Lease: A claim that is held by renewing it
LeaseSpec.holderIdentity: Who holds the claim
LeaseSpec.leaseDurationSeconds: How long the claim lasts after a renewal
LeaseSpec.acquireTime: When the holder got the claim
LeaseSpec.renewTime: When the holder renewed the claim last
LeaseSpec.leaseTransitions: How often the claim changed hands
LeaseSpec.strategy: How a holder is chosen, in coordinated elections
LeaseSpec.preferredHolder: Who should get the claim next
CertificateSigningRequest: Asks for a certificate; it is signed once approved
CsrSpec.request: The PKCS#10 request in PEM, in base64
CsrSpec.signerName: Who should sign
CsrSpec.expirationSeconds: How long the certificate should be valid
CsrSpec.usages: What the key may be used for
CsrSpec.username: Who asked; set by the server
CsrSpec.uid: The UID of who asked; set by the server
CsrSpec.groups: The groups of who asked; set by the server
CsrSpec.extra: What else is known of who asked; set by the server
CsrStatus.conditions: Whether it is approved, denied or failed
CsrStatus.certificate: The certificate in PEM, in base64
*.lastUpdateTime: When this was updated last
Role: Permissions in a namespace
ClusterRole: Permissions in all namespaces, or on what is in none
ClusterRole.aggregationRule: From which other roles the rules are gathered
AggregationRule.clusterRoleSelectors: Which roles, by their labels
RoleBinding: Gives a role's permissions in a namespace
ClusterRoleBinding: Gives a role's permissions everywhere
*.rules: What is permitted
*.subjects: Who gets the permissions
*.roleRef: The role whose permissions are given; cannot be changed
PolicyRule: Permits some verbs on some resources or paths
*.verbs: What may be done; * is everything
*.apiGroups: The groups of the resources; "" is the core group, * is every one
*.resources: The resources; * is every one
*.resourceNames: Names of objects; none is every one
*.nonResourceURLs: Paths outside the API
Subject.kind: User, Group or ServiceAccount
*.apiGroup: The group of the kind
TokenRequest: Asks for a token of a service account
*.audiences: Whom the token is meant for
TokenRequestSpec.expirationSeconds: How long the token should be valid
TokenRequestSpec.boundObjectRef: An object with which the token ends
*.token: The token
TokenRequestStatus.expirationTimestamp: When the token ends
TokenReview: Asks whose token it is
TokenReviewStatus.authenticated: Whether the token is valid
TokenReviewStatus.user: Whose it is
*.error: Why it could not be told
SelfSubjectReview: Asks who the caller is
SelfSubjectReviewStatus.userInfo: Who the caller is
UserInfo.username: The name
UserInfo.groups: The groups
UserInfo.extra: What else is known
SubjectAccessReview: Asks whether someone may do something
LocalSubjectAccessReview: Asks whether someone may do something in a namespace
SelfSubjectAccessReview: Asks whether the caller may do something
SelfSubjectRulesReview: Asks what the caller may do in a namespace
*.resourceAttributes: What on a resource
*.nonResourceAttributes: What on a path outside the API
AccessSpec.user: Who, by name
AccessSpec.groups: The groups of who
AccessSpec.extra: What else is known of who
AccessStatus.allowed: Whether it is permitted
AccessStatus.denied: Whether it is forbidden, whatever else permits it
*.evaluationError: What kept the answer from being complete
ResourceAttributes.verb: What should be done
ResourceAttributes.subresource: Which part of the object
*.fieldSelector: Which objects, by their fields
*.labelSelector: Which objects, by their labels
SelectorAttributes.rawSelector: The selector as a query has it
SelectorAttributes.requirements: The selector taken apart
*.path: The path
RulesSpec.namespace: Which namespace
RulesStatus.resourceRules: What is permitted on resources
RulesStatus.nonResourceRules: What is permitted on paths
RulesStatus.incomplete: Whether there may be more
LabelSelector: Picks objects by their labels
LabelSelector.matchLabels: Labels that an object must have
LabelSelector.matchExpressions: Conditions that an object's labels must meet
Expression.key: The label
Expression.operator: In, NotIn, Exists or DoesNotExist
Expression.values: The values that In and NotIn compare with
ObjectMeta: What every object has
ObjectMeta.name: The name, unique among its kind in its namespace
ObjectMeta.generateName: The beginning of a name that the server completes
ObjectMeta.namespace: The namespace; empty for kinds that are in none
ObjectMeta.selfLink: No longer set
ObjectMeta.uid: Tells the object from earlier ones of its name
ObjectMeta.resourceVersion: Which state of the object this is
ObjectMeta.generation: How often what is wanted has changed
ObjectMeta.creationTimestamp: When it was created
ObjectMeta.deletionTimestamp: When its deletion was asked for
ObjectMeta.deletionGracePeriodSeconds: How long it may take to go
ObjectMeta.labels: Keys and values to pick objects by
ObjectMeta.annotations: Keys and values for any use
ObjectMeta.ownerReferences: Objects that it goes with
ObjectMeta.finalizers: What must be cleaned up before it goes
ObjectMeta.managedFields: Who set which fields
OwnerReference: Names an object that the one it stands in belongs to
OwnerReference.controller: Whether this owner manages the object
OwnerReference.blockOwnerDeletion: Whether a foreground deletion of the owner waits
ManagedFieldsEntry: The fields that one manager set
ManagedFieldsEntry.manager: The manager
ManagedFieldsEntry.operation: Apply or Update
ManagedFieldsEntry.time: When it set them
ManagedFieldsEntry.fieldsType: The form of the fields, FieldsV1
ManagedFieldsEntry.fieldsV1: The fields
ManagedFieldsEntry.subresource: The subresource they were set through
ListMeta: What every list has
ListMeta.selfLink: No longer set
ListMeta.resourceVersion: As of which state the list is
ListMeta.continue: Asks for the next part of the list
ListMeta.remainingItemCount: How many items follow this part
DeleteOptions: How to delete
DeleteOptions.gracePeriodSeconds: How long the object may take to go
DeleteOptions.preconditions: What must hold for the deletion
DeleteOptions.orphanDependents: Replaced by propagationPolicy
DeleteOptions.propagationPolicy: What becomes of dependents: Orphan, Background or Foreground
DeleteOptions.dryRun: All = only try
DeleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Delete even what cannot be read
Preconditions: What must hold for an operation
Preconditions.uid: The UID that the object must have
Preconditions.resourceVersion: The state that the object must be in
Status: How a request went
Status.status: Success or Failure
Status.details: More about the reason
Status.code: The HTTP status code
StatusDetails: More about why a request failed
StatusDetails.causes: What is wrong, field by field
StatusDetails.retryAfterSeconds: When to try again
StatusCause: One thing that is wrong
StatusCause.field: The field it is about
*.name: The name
*.namespace: The namespace
*.uid: The UID
*.kind: The kind
*.apiVersion: The group and version
*.group: The group
*.version: The version
*.resource: The resource
*.verb: What should be done
*.resourceVersion: Which state of the object
*.type: The type
*.status: True, False or Unknown
*.reason: Why, in a word
*.message: Why, for people
*.lastTransitionTime: When the status changed last
"""

_TEXTS = dict(line.split(": ", 1) for line in (_LINES.strip() + LINES.rstrip()).splitlines())
_TOPS = {"spec": "What is wanted", "status": "What is the case"}


def describe(path: str) -> str:
    """Return the line for a message or ``Message.field``, "" when there is none."""
    if path in _TEXTS:
        return _TEXTS[path]
    message, dot, field = path.rpartition(".")
    if not dot or message == "events":
        return ""
    own = message.removeprefix("events.")
    if field in _TOPS and not own.endswith(("Condition", "Status")):
        return _TOPS[field]
    return _TEXTS.get(f"{own}.{field}") or _TEXTS.get(f"*.{field}", "")
