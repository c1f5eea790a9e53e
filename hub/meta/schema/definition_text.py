"""What the fields of a CustomResourceDefinition mean, in a line each, as in `builtin_text`."""

LINES = """
CustomResourceDefinition: Defines a kind of its own, which the hub serves from then on
CrdSpec.group: The API group of the kind; the definition is named plural.group
CrdSpec.names: What the kind is called, in paths, in objects and in commands
CrdSpec.scope: Namespaced or Cluster
CrdSpec.versions: The versions of the kind; objects are stored in one of them
CrdSpec.conversion: How objects get from one version to another
CrdSpec.preserveUnknownFields: No longer in use, must be false; a schema says it where it is wanted
CrdNames.plural: The name in paths, in lower case
CrdNames.singular: The name of one, in lower case; the kind in lower case when nothing is said
CrdNames.shortNames: Shorter names for commands
CrdNames.kind: The name in objects, in capitals and small letters
CrdNames.listKind: The kind of a list; the kind and List when nothing is said
CrdNames.categories: Names that stand for several kinds in commands, such as all
CrdVersion.name: The version, such as v1 or v1beta1
CrdVersion.served: Whether the version can be asked for
CrdVersion.storage: Whether objects are stored in this version; one of them is
CrdVersion.deprecated: Whether a request for the version is answered with a warning
CrdVersion.deprecationWarning: The text of that warning
CrdVersion.schema: What objects look like in this version
CrdVersion.subresources: Which parts have paths of their own
CrdVersion.additionalPrinterColumns: The columns of a Table, beside the name
CrdVersion.selectableFields: Fields that field selectors may name
CrdValidation.openAPIV3Schema: The schema; what it does not know is dropped
CrdSubresources.status: When it is there, status is written through /status only
CrdSubresources.scale: Where /scale finds its numbers
CrdScale.specReplicasPath: Where the wanted number stands, such as .spec.replicas
CrdScale.statusReplicasPath: Where the present number stands, such as .status.replicas
CrdScale.labelSelectorPath: Where the label selector stands as a text
CrdColumn.name: The heading
CrdColumn.type: boolean, date, integer, number or string
CrdColumn.format: How values are written, such as int32 or date-time
CrdColumn.description: What the column shows
CrdColumn.priority: Above 0 the column is for wide output only
CrdColumn.jsonPath: Where the value stands in the object
CrdSelectable.jsonPath: Where the value stands in the object, such as .spec.color
CrdConversion.strategy: None (only apiVersion changes) or Webhook
CrdConversion.webhook: Whom to ask, for Webhook
CrdWebhook.clientConfig: Where the webhook is
CrdWebhook.conversionReviewVersions: Versions of ConversionReview that it reads, best first
CrdClientConfig.url: Its address, for one outside
CrdClientConfig.service: Its Service, for one inside
CrdClientConfig.caBundle: Certificates to check it with, PEM in base64
CrdService.namespace: The namespace of the Service
CrdService.name: The name of the Service
CrdService.path: The path to ask
CrdService.port: The port to ask; 443 when nothing is said
CrdStatus.conditions: How far the definition has come, such as Established
CrdStatus.acceptedNames: The names that are in use
CrdStatus.storedVersions: Versions that objects were ever stored in
CrdStatus.observedGeneration: The generation that the status speaks of
CrdCondition.observedGeneration: The generation that the condition speaks of
JSONSchemaProps: A schema, in the words of OpenAPI 3 with some of Kubernetes' own
JSONSchemaProps.id: Not for definitions
JSONSchemaProps.$schema: Not for definitions
JSONSchemaProps.$ref: Not for definitions
JSONSchemaProps.description: What the value means
JSONSchemaProps.type: array, boolean, integer, number, object or string
JSONSchemaProps.format: What a text or number must look like, such as date-time
JSONSchemaProps.title: A heading
JSONSchemaProps.default: What stands for an absent field
JSONSchemaProps.maximum: The greatest number
JSONSchemaProps.exclusiveMaximum: Whether numbers must be below the maximum
JSONSchemaProps.minimum: The least number
JSONSchemaProps.exclusiveMinimum: Whether numbers must be above the minimum
JSONSchemaProps.maxLength: The most characters of a text
JSONSchemaProps.minLength: The fewest characters of a text
JSONSchemaProps.pattern: A regular expression that a text must match somewhere
JSONSchemaProps.maxItems: The most items of a list
JSONSchemaProps.minItems: The fewest items of a list
JSONSchemaProps.uniqueItems: Must be false here; x-kubernetes-list-type says it
JSONSchemaProps.multipleOf: Numbers must be a multiple of it
JSONSchemaProps.enum: The values that are allowed
JSONSchemaProps.maxProperties: The most fields of an object
JSONSchemaProps.minProperties: The fewest fields of an object
JSONSchemaProps.required: Fields that must be there
JSONSchemaProps.items: The schema of a list's items
JSONSchemaProps.allOf: Schemas that must all hold
JSONSchemaProps.oneOf: Schemas of which one must hold
JSONSchemaProps.anyOf: Schemas of which some must hold
JSONSchemaProps.not: A schema that must not hold
JSONSchemaProps.properties: The schemas of fields by name
JSONSchemaProps.additionalProperties: The schema of every other field, or whether there are others
JSONSchemaProps.patternProperties: Not for definitions
JSONSchemaProps.dependencies: Not for definitions
JSONSchemaProps.additionalItems: Not for definitions
JSONSchemaProps.definitions: Not for definitions
JSONSchemaProps.externalDocs: Where to read more
JSONSchemaProps.example: What a value may look like
JSONSchemaProps.nullable: Whether null is a value
JSONSchemaProps.x-kubernetes-preserve-unknown-fields: Whether unknown fields are kept
JSONSchemaProps.x-kubernetes-embedded-resource: Whether the value is a whole object with its kind
JSONSchemaProps.x-kubernetes-int-or-string: Whether the value is an integer or a text
JSONSchemaProps.x-kubernetes-list-map-keys: What tells the items of a map apart
JSONSchemaProps.x-kubernetes-list-type: atomic, set or map
JSONSchemaProps.x-kubernetes-map-type: granular or atomic
JSONSchemaProps.x-kubernetes-validations: Rules in CEL
JSONSchemaPropsOrArray: A schema, or a list of them
JSONSchemaPropsOrBool: A schema, or whether there may be anything
JSONSchemaPropsOrStringArray: A schema, or a list of texts
CelRule.rule: An expression that must be true; self is the value
CelRule.message: What to say when it is not
CelRule.messageExpression: An expression that makes the message
CelRule.reason: Why, in a word
CelRule.fieldPath: Which field is to blame
CelRule.optionalOldSelf: Whether the rule holds for new objects, too
ExternalDocumentation.description: What is there
ExternalDocumentation.url: Its address
Scale: How many there are of something, and how many there should be
ScaleSpec.replicas: The number that is wanted
ScaleStatus.replicas: The number that there is
ScaleStatus.selector: A label selector, as a text
"""
