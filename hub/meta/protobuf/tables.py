"""The field numbers of the kinds that clients send as protobuf.

Owns facts of the public Kubernetes API: names, numbers, types and which fields are optional. The
notation is that of `hub.meta.protobuf.schema`. A kind that is not here is refused with a 400 that
says so.
"""

from hub.meta.protobuf.schema import MessageSpec, parse_tables

_META = """
ObjectMeta: name=1 generateName=2 namespace=3 selfLink=4 uid=5 resourceVersion=6 generation=7:int64
    creationTimestamp=8:time deletionTimestamp=9:time? deletionGracePeriodSeconds=10:int64?
    labels=11:{string} annotations=12:{string} ownerReferences=13:[OwnerReference]
    finalizers=14:[string] managedFields=17:[ManagedFieldsEntry]
OwnerReference: apiVersion=5! kind=1! name=3! uid=4! controller=6:bool? blockOwnerDeletion=7:bool?
ManagedFieldsEntry: manager=1 operation=2 apiVersion=3 time=4:time? fieldsType=6
    fieldsV1=7:rawjson? subresource=8
LabelSelector: matchLabels=1:{string} matchExpressions=2:[Expression]
Expression: key=1! operator=2! values=3:[string]
ListMeta: selfLink=1 resourceVersion=2 continue=3 remainingItemCount=4:int64?
Status: metadata=1:ListMeta status=2 message=3 reason=4 details=5:StatusDetails? code=6:int32
StatusDetails: name=1 group=2 kind=3 uid=6 causes=4:[StatusCause] retryAfterSeconds=5:int32
StatusCause: reason=1 message=2 field=3
DeleteOptions: gracePeriodSeconds=1:int64? preconditions=2:Preconditions? orphanDependents=3:bool?
    propagationPolicy=4? dryRun=5:[string]
    ignoreStoreReadErrorWithClusterBreakingPotential=6:bool?
Preconditions: uid=1? resourceVersion=2?
"""

_CORE = """
Namespace: metadata=1:ObjectMeta spec=2:NamespaceSpec status=3:NamespaceStatus
NamespaceSpec: finalizers=1:[string]
NamespaceStatus: phase=1 conditions=2:[NamespaceCondition]
NamespaceCondition: type=1! status=2! lastTransitionTime=4:time reason=5 message=6
ConfigMap: metadata=1:ObjectMeta immutable=4:bool? data=2:{string} binaryData=3:{bytes}
Secret: metadata=1:ObjectMeta immutable=5:bool? data=2:{bytes} stringData=4:{string} type=3
ServiceAccount: metadata=1:ObjectMeta secrets=2:[ObjectReference]
    imagePullSecrets=3:[LocalObjectReference] automountServiceAccountToken=4:bool?
LocalObjectReference: name=1
ObjectReference: kind=1 namespace=2 name=3 uid=4 apiVersion=5 resourceVersion=6 fieldPath=7
Event: metadata=1:ObjectMeta involvedObject=2:ObjectReference reason=3 message=4
    source=5:EventSource firstTimestamp=6:time lastTimestamp=7:time count=8:int32 type=9
    eventTime=10:microtime series=11:EventSeries? action=12 related=13:ObjectReference?
    reportingComponent=14! reportingInstance=15!
EventSource: component=1 host=2
EventSeries: count=1:int32 lastObservedTime=2:microtime
"""

_GROUPS = """
events.Event: metadata=1:ObjectMeta eventTime=2:microtime series=3:events.EventSeries?
    reportingController=4 reportingInstance=5 action=6 reason=7 regarding=8:ObjectReference
    related=9:ObjectReference? note=10 type=11 deprecatedSource=12:EventSource
    deprecatedFirstTimestamp=13:time deprecatedLastTimestamp=14:time deprecatedCount=15:int32
events.EventSeries: count=1:int32! lastObservedTime=2:microtime
Lease: metadata=1:ObjectMeta spec=2:LeaseSpec
LeaseSpec: holderIdentity=1? leaseDurationSeconds=2:int32? acquireTime=3:microtime?
    renewTime=4:microtime? leaseTransitions=5:int32? strategy=6? preferredHolder=7?
CertificateSigningRequest: metadata=1:ObjectMeta spec=2:CsrSpec status=3:CsrStatus
CsrSpec: request=1:bytes! signerName=7! expirationSeconds=8:int32? usages=5:[string] username=2
    uid=3 groups=4:[string] extra=6:{strings}
CsrStatus: conditions=1:[CsrCondition] certificate=2:bytes
CsrCondition: type=1! status=6! reason=2 message=3 lastUpdateTime=4:time lastTransitionTime=5:time
"""

_RBAC = """
Role: metadata=1:ObjectMeta rules=2:[PolicyRule]
ClusterRole: metadata=1:ObjectMeta rules=2:[PolicyRule] aggregationRule=3:AggregationRule?
RoleBinding: metadata=1:ObjectMeta subjects=2:[Subject] roleRef=3:RoleRef
ClusterRoleBinding: metadata=1:ObjectMeta subjects=2:[Subject] roleRef=3:RoleRef
PolicyRule: verbs=1:[string] apiGroups=2:[string] resources=3:[string] resourceNames=4:[string]
    nonResourceURLs=5:[string]
AggregationRule: clusterRoleSelectors=1:[LabelSelector]
Subject: kind=1! apiGroup=2 name=3! namespace=4
RoleRef: apiGroup=1! kind=2! name=3!
"""

_AUTHENTICATION = """
TokenRequest: metadata=1:ObjectMeta spec=2:TokenRequestSpec status=3:TokenRequestStatus
TokenRequestSpec: audiences=1:[string] expirationSeconds=4:int64? boundObjectRef=3:BoundObject?
TokenRequestStatus: token=1! expirationTimestamp=2:time
BoundObject: kind=1 apiVersion=2 name=3 uid=4
TokenReview: metadata=1:ObjectMeta spec=2:TokenReviewSpec status=3:TokenReviewStatus
TokenReviewSpec: token=1 audiences=2:[string]
TokenReviewStatus: authenticated=1:bool user=2:UserInfo audiences=4:[string] error=3
SelfSubjectReview: metadata=1:ObjectMeta status=2:SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo=1:UserInfo
UserInfo: username=1 uid=2 groups=3:[string] extra=4:{strings}
"""

_AUTHORIZATION = """
SubjectAccessReview: metadata=1:ObjectMeta spec=2:AccessSpec status=3:AccessStatus
LocalSubjectAccessReview: metadata=1:ObjectMeta spec=2:AccessSpec status=3:AccessStatus
SelfSubjectAccessReview: metadata=1:ObjectMeta spec=2:SelfAccessSpec status=3:AccessStatus
SelfSubjectRulesReview: metadata=1:ObjectMeta spec=2:RulesSpec status=3:RulesStatus
SelfAccessSpec: resourceAttributes=1:ResourceAttributes?
    nonResourceAttributes=2:NonResourceAttributes?
AccessSpec: resourceAttributes=1:ResourceAttributes?
    nonResourceAttributes=2:NonResourceAttributes? user=3 groups=4:[string] extra=5:{strings} uid=6
AccessStatus: allowed=1:bool! denied=4:bool reason=2 evaluationError=3
ResourceAttributes: namespace=1 verb=2 group=3 version=4 resource=5 subresource=6 name=7
    fieldSelector=8:SelectorAttributes? labelSelector=9:SelectorAttributes?
SelectorAttributes: rawSelector=1 requirements=2:[Expression]
NonResourceAttributes: path=1 verb=2
RulesSpec: namespace=1
RulesStatus: resourceRules=1:[ResourceRule] nonResourceRules=2:[NonResourceRule]
    incomplete=3:bool! evaluationError=4
ResourceRule: verbs=1:[string] apiGroups=2:[string] resources=3:[string] resourceNames=4:[string]
NonResourceRule: verbs=1:[string] nonResourceURLs=2:[string]
"""

_EXTENSIONS = """
CustomResourceDefinition: metadata=1:ObjectMeta spec=2:CrdSpec status=3:CrdStatus
CrdSpec: group=1! names=3:CrdNames scope=4! versions=7:[CrdVersion] conversion=9:CrdConversion?
    preserveUnknownFields=10:bool
CrdNames: plural=1! singular=2 shortNames=3:[string] kind=4! listKind=5 categories=6:[string]
CrdVersion: name=1! served=2:bool! storage=3:bool! deprecated=7:bool deprecationWarning=8?
    schema=4:CrdValidation? subresources=5:CrdSubresources? additionalPrinterColumns=6:[CrdColumn]
    selectableFields=9:[CrdSelectable]
CrdValidation: openAPIV3Schema=1:JSONSchemaProps?
CrdSubresources: status=1:CrdStatusSubresource? scale=2:CrdScale?
CrdStatusSubresource:
CrdScale: specReplicasPath=1! statusReplicasPath=2! labelSelectorPath=3?
CrdColumn: name=1! type=2! format=3 description=4 priority=5:int32 jsonPath=6!
CrdSelectable: jsonPath=1!
CrdConversion: strategy=1! webhook=2:CrdWebhook?
CrdWebhook: clientConfig=2:CrdClientConfig? conversionReviewVersions=3:[string]
CrdClientConfig: url=3? service=1:CrdService? caBundle=2:bytes
CrdService: namespace=1! name=2! path=3? port=4:int32?
CrdStatus: conditions=1:[CrdCondition] acceptedNames=2:CrdNames storedVersions=3:[string]
    observedGeneration=4:int64
CrdCondition: type=1! status=2! lastTransitionTime=3:time reason=4 message=5
    observedGeneration=6:int64
JSONSchemaProps: id=1 $schema=2 $ref=3? description=4 type=5 format=6 title=7 default=8:rawjson?
    maximum=9:double? exclusiveMaximum=10:bool minimum=11:double? exclusiveMinimum=12:bool
    maxLength=13:int64? minLength=14:int64? pattern=15 maxItems=16:int64? minItems=17:int64?
    uniqueItems=18:bool multipleOf=19:double? enum=20:[rawjson] maxProperties=21:int64?
    minProperties=22:int64? required=23:[string] items=24:JSONSchemaPropsOrArray?
    allOf=25:[JSONSchemaProps] oneOf=26:[JSONSchemaProps] anyOf=27:[JSONSchemaProps]
    not=28:JSONSchemaProps? properties=29:{JSONSchemaProps}
    additionalProperties=30:JSONSchemaPropsOrBool? patternProperties=31:{JSONSchemaProps}
    dependencies=32:{JSONSchemaPropsOrStringArray} additionalItems=33:JSONSchemaPropsOrBool?
    definitions=34:{JSONSchemaProps} externalDocs=35:ExternalDocumentation?
    example=36:rawjson? nullable=37:bool
    x-kubernetes-preserve-unknown-fields=38:bool? x-kubernetes-embedded-resource=39:bool
    x-kubernetes-int-or-string=40:bool x-kubernetes-list-map-keys=41:[string]
    x-kubernetes-list-type=42? x-kubernetes-map-type=43? x-kubernetes-validations=44:[CelRule]
JSONSchemaPropsOrArray: schema=1:JSONSchemaProps? jSONSchemas=2:[JSONSchemaProps]
JSONSchemaPropsOrBool: allows=1:bool schema=2:JSONSchemaProps?
JSONSchemaPropsOrStringArray: schema=1:JSONSchemaProps? property=2:[string]
ExternalDocumentation: description=1 url=2
CelRule: rule=1! message=2 messageExpression=3 reason=4? fieldPath=5 optionalOldSelf=6:bool?
"""

_AUTOSCALING = """
Scale: metadata=1:ObjectMeta spec=2:ScaleSpec status=3:ScaleStatus
ScaleSpec: replicas=1:int32
ScaleStatus: replicas=1:int32! selector=2
"""

MESSAGES = parse_tables(
    _META + _CORE + _GROUPS + _RBAC + _AUTHENTICATION + _AUTHORIZATION + _EXTENSIONS + _AUTOSCALING
)
"""Every message by its name here (not always the name in the API)."""

_KINDS = {
    "v1": "Namespace ConfigMap Secret ServiceAccount Event Status",
    "coordination.k8s.io/v1": "Lease",
    "certificates.k8s.io/v1": "CertificateSigningRequest",
    "rbac.authorization.k8s.io/v1": "Role ClusterRole RoleBinding ClusterRoleBinding",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "autoscaling/v1": "Scale",
    "authentication.k8s.io/v1": "TokenRequest TokenReview SelfSubjectReview",
    "authorization.k8s.io/v1": "SubjectAccessReview LocalSubjectAccessReview"
    " SelfSubjectAccessReview SelfSubjectRulesReview",
}

KINDS: dict[tuple[str, str], MessageSpec] = {
    (api_version, kind): MESSAGES[kind]
    for api_version, kinds in _KINDS.items()
    for kind in kinds.split()
} | {("events.k8s.io/v1", "Event"): MESSAGES["events.Event"]}
"""The message of each (apiVersion, kind)."""


def find_message(api_version: str, kind: str) -> MessageSpec | None:
    """Return the message of a kind; DeleteOptions belongs to every group and version."""
    if kind == "DeleteOptions":
        return MESSAGES[kind]
    return KINDS.get((api_version, kind))
