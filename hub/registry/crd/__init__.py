"""CustomResourceDefinitions: the kind itself, and the kinds that are made from its objects."""
