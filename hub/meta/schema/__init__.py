"""Structural schemas of custom resources: what kube-apiserver does with an openAPIV3Schema.

`structural` reads a schema and `check` says whether it may be served. For an object: `prune` drops
unknown fields, `default` fills in defaults (also on read), `validate.Validator` judges, in this
order. `openapi` publishes, `builtin` describes the kinds that have no CRD. The rest stands behind
these: `fast` (is a value valid) and `explain` (what is wrong with it), `scalars`, `formats`,
`regex`, `charclass`, `listtype`, `embedded`, `metadata`, `correlate`, `gotext`. CEL rules are kept
in `structural.Traits.cel` and not looked at here.
"""
