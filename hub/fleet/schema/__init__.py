"""Schemas and printer columns of OCM's kinds, as data: a module a kind, `table` finds them.

Groups, versions, field names, types, defaults, enums, bounds and list types are upstream's, which
`tests/unit/fleet/test_schema.py` holds field by field; descriptions and messages are ours.
"""

from hub.fleet.schema.table import COLUMNS, SCHEMAS, Column, columns_of, schema_of

__all__ = ["COLUMNS", "SCHEMAS", "Column", "columns_of", "schema_of"]
