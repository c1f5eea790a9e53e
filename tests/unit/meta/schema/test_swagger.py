"""The v2 document: what is left of a schema, and gnostic's message of it."""

from hub.meta import Obj
from hub.meta.protobuf.wire import BYTES, fields
from hub.meta.schema.swagger import definition, encode_swagger, swagger

REF = "#/components/schemas/io.k8s.meta.v1.ObjectMeta"
KIND = "x-kubernetes-group-version-kind"
GVK = {"group": "", "kind": "DeleteOptions", "version": "v1"}


def document(**schemas: Obj) -> Obj:
    return {"components": {"schemas": {k.replace("_", "."): v for k, v in schemas.items()}}}


def test_references_go_to_definitions_and_keep_what_is_said_of_the_field() -> None:
    schema = {"allOf": [{"$ref": REF}], "description": "d", "default": {}}
    assert definition(schema) == {
        "$ref": "#/definitions/io.k8s.meta.v1.ObjectMeta",
        "description": "d",
    }
    assert definition({"$ref": REF}) == {"$ref": "#/definitions/io.k8s.meta.v1.ObjectMeta"}


def test_nothing_is_said_where_a_client_would_refuse_what_the_server_takes() -> None:
    inner: Obj = {"type": "object", "properties": {"a": {"type": "string"}}}
    open_ = "x-kubernetes-preserve-unknown-fields"
    assert definition({**inner, open_: True}) == {"type": "object", open_: True}
    assert definition({**inner, "nullable": True}) == {}
    either = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}]}
    assert definition(either) == {"x-kubernetes-int-or-string": True}
    assert definition({"type": "array"}) == {}
    listed = {"type": "array", "items": inner, "maxItems": 3, "minItems": 1}
    assert definition(listed) == listed


def test_schemas_of_all_documents_are_gathered_with_their_kinds() -> None:
    other = GVK | {"group": "apps.example.com"}
    built_in = {"type": "object", "required": ["a"]}
    found = swagger(
        [
            document(io_k8s_DeleteOptions={"type": "object", KIND: [GVK]}, io_k8s_A=built_in),
            document(io_k8s_DeleteOptions={"type": "object", KIND: [other]}, com_B=built_in),
        ],
        "v1",
    )
    assert found["definitions"] == {
        "com.B": {"type": "object", "required": ["a"]},
        "io.k8s.A": {"type": "object"},  # the server may fill it in
        "io.k8s.DeleteOptions": {"type": "object", KIND: [GVK, other]},
    }


def test_the_message_holds_what_the_document_says() -> None:
    schema = {
        "type": "object",
        "description": "d",
        "required": ["a"],
        "properties": {"a": {"type": "array", "items": {"$ref": "#/components/schemas/com.C"}}},
        KIND: [GVK],
    }
    made = encode_swagger(swagger([document(com_B=schema)], "v1"))
    (named,) = part(part(made, 9)[0], 1)
    (body,) = part(named, 2)
    assert part(named, 1) == [b"com.B"]
    assert (part(body, 4), part(body, 19)) == ([b"d"], [b"a"])
    assert part(part(body, 22)[0], 1) == [b"object"]
    (field,) = part(part(body, 25)[0], 1)
    assert part(field, 1) == [b"a"]
    (items,) = part(part(field, 2)[0], 23)
    assert part(part(items, 1)[0], 1) == [b"#/definitions/com.C"]
    (extension,) = part(body, 31)
    assert part(extension, 1) == [KIND.encode()]
    assert part(part(extension, 2)[0], 2) == [
        b'[{"group":"","kind":"DeleteOptions","version":"v1"}]\n'
    ]


def part(message: bytes, number: int) -> list[bytes]:
    """The fields of that number, which hold bytes."""
    return [
        message[field.start : field.end]
        for field in fields(message, 0, len(message))
        if field.number == number and field.wire_type == BYTES
    ]
