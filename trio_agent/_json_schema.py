"""JSON Schema 2020-12 of Python types, as models and providers like it.

Made from what ``msgspec.inspect`` says of a type and not by ``msgspec.json.schema``, because servers want more than a
correct schema: an ``enum`` keeps its source order and has a ``type``, date-times have their format, a class used once
stands where it is used, and the texts of fields come from the docstring of their class. ``_signature.py`` is below.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Final, Literal, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET
from msgspec import inspect as types

from trio_agent._docstrings import parse_docstring
from trio_agent._json_values import is_array, is_object, json_type
from trio_agent._messages import JsonObject, JsonValue
from trio_agent._signature import NO_DEFAULT, Annotation, Parameter, is_path, subtypes

__all__ = ["decode_extra", "encode_extra", "parameters_schema", "type_schema"]

_DEFINITIONS: Final = "#/$defs/"
_CONSTRAINTS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_LENGTHS: Final = {"string": "Length", "array": "Items", "object": "Properties"}
_JSON_TYPES: Final[dict[type[types.Type], str | None]] = {
    types.AnyType: None,
    types.RawType: None,
    types.NoneType: "null",
    types.BoolType: "boolean",
    types.IntType: "integer",
    types.FloatType: "number",
    types.StrType: "string",
    types.BytesType: "string",
    types.ByteArrayType: "string",
    types.MemoryViewType: "string",
    types.DateTimeType: "string",
    types.DateType: "string",
    types.TimeType: "string",
    types.TimeDeltaType: "string",
    types.UUIDType: "string",
    types.DecimalType: "string",
    types.CustomType: "string",
}
_FORMATS: Final[dict[type[types.Type], str]] = {
    types.DateTimeType: "date-time",
    types.DateType: "date",
    types.TimeDeltaType: "duration",
    types.UUIDType: "uuid",
}


_EMPTY: Final[tuple[Any, ...]] = (list, dict, set, frozenset)


def encode_extra(value: object) -> JsonValue:
    """The ``enc_hook`` for msgspec: paths are text."""
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"there is no JSON for a {type(value).__name__}")


def decode_extra(cls: type, value: object) -> object:
    """The ``dec_hook`` for msgspec: text becomes a path."""
    if not is_path(cls) or not isinstance(value, str):
        raise TypeError(f"Expected `str`, got `{json_type(value)}`")
    return cls(value)


def parameters_schema(parameters: Iterable[Parameter]) -> JsonObject:
    """The schema of a call's arguments."""
    parameters = tuple(parameters)
    generator = _Generator(parameter.annotation for parameter in parameters)
    properties: JsonObject = {}
    for parameter in parameters:
        schema = properties[parameter.name] = generator.schema(parameter.info)
        if parameter.description is not None:
            schema["description"] = parameter.description
        if parameter.default is not NO_DEFAULT:
            default = _shown_default(parameter.default, parameter.annotation)
            if default is not UNSET:
                schema["default"] = default
    return generator.finish(
        {
            "type": "object",
            "properties": properties,
            "required": [parameter.name for parameter in parameters if parameter.default is NO_DEFAULT],
            "additionalProperties": False,
        }
    )


def type_schema(annotation: Annotation) -> JsonObject:
    """The schema of a type."""
    generator = _Generator([annotation])
    return generator.finish(generator.schema(types.type_info(annotation)))


def _shown_default(default: object, annotation: Annotation = Any) -> JsonValue:
    # `UNSET` if a model could not send it: a default need not be JSON, nor of the type of its parameter.
    try:
        value = msgspec.to_builtins(default, str_keys=True, enc_hook=encode_extra)
        msgspec.convert(value, annotation, str_keys=True, dec_hook=decode_extra)
    except (TypeError, msgspec.ValidationError):
        return UNSET
    return value


def _field_default(field: types.Field) -> JsonValue:
    empty = field.default_factory in _EMPTY
    default = field.default_factory() if empty else field.default
    return UNSET if default is NODEFAULT else _shown_default(default)


class _Generator:
    # Classes become definitions while they are met; `finish` puts those used once in their place.

    def __init__(self, annotations: Iterable[Any]) -> None:
        self._annotations = list(annotations)
        self._literals: dict[frozenset[tuple[str, Any]], tuple[Any, ...]] | None = None
        self._names: dict[Any, str] = {}
        self._definitions: dict[str, JsonObject] = {}
        self._uses: dict[str, int] = {}

    def schema(self, info: types.Type) -> JsonObject:
        match info:
            case types.Metadata():
                return {**self.schema(info.type), **cast("JsonObject", getattr(info, "extra_json_schema", None) or {})}
            case types.EnumType(cls=cls):
                return _enum([member.value for member in cls])
            case types.LiteralType(values=values):
                return _enum(self._in_source_order(values))
            case types.UnionType():
                return {"anyOf": [self.schema(alternative) for alternative in info.types]}
            case types.StructType() | types.DataclassType() | types.TypedDictType() | types.NamedTupleType():
                return self._reference(info)
            case types.TupleType(item_types=items):
                count = {"minItems": len(items), "maxItems": len(items)}
                prefix = {"prefixItems": [self.schema(item) for item in items]} if items else {}
                return {"type": "array", **prefix, "items": False, **count}
            case types.CollectionType(item_type=item):
                unique = {"uniqueItems": True} if isinstance(info, types.SetType | types.FrozenSetType) else {}
                return self._with_constraints(info, {"type": "array", **self._unless_any("items", item), **unique})
            case types.DictType(value_type=value):
                return self._with_constraints(
                    info, {"type": "object", **self._unless_any("additionalProperties", value)}
                )
            case _:
                return self._with_constraints(info, _plain(info))

    def _unless_any(self, keyword: str, info: types.Type) -> JsonObject:
        return {} if isinstance(info, types.AnyType) else {keyword: self.schema(info)}

    def _with_constraints(self, info: types.Type, schema: JsonObject) -> JsonObject:
        for attribute, keyword in _CONSTRAINTS.items():
            if (value := getattr(info, attribute, None)) is not None:
                schema[keyword] = value
        for attribute in ("min", "max"):
            value = getattr(info, f"{attribute}_length", None)
            if value is not None and "contentEncoding" not in schema:
                schema[attribute + _LENGTHS[schema["type"]]] = value
        return schema

    def _in_source_order(self, values: tuple[Any, ...]) -> list[Any]:
        # msgspec sorts them; a model reads the order as meaning.
        if self._literals is None:
            self._literals = {}
            for literal in _literals_in(self._annotations):
                self._literals.setdefault(_typed(literal), literal)
        return list(self._literals.get(_typed(values), values))

    def _reference(self, info: Any) -> JsonObject:  # noqa: ANN401
        name = self._names.get(info.cls)
        if name is None:
            base = re.sub(r"[^a-zA-Z0-9._-]", "_", getattr(info.cls, "__name__", str(info.cls)))
            taken = set(self._names.values())
            name = next(
                each for n in range(1, len(taken) + 2) if (each := base if n == 1 else f"{base}_{n}") not in taken
            )
            self._names[info.cls] = name
            self._definitions[name] = self._class(info)
        self._uses[name] = self._uses.get(name, 0) + 1
        return {"$ref": _DEFINITIONS + name}

    def _class(self, info: Any) -> JsonObject:  # noqa: ANN401
        cls = get_origin(info.cls) or info.cls
        own = cls.__doc__ if (cls.__doc__ or "").startswith(f"{cls.__name__}(") is False else None
        docstring = parse_docstring(own)
        fields: dict[str, JsonObject] = {}
        for field in info.fields:
            schema = self.schema(field.type)
            if (text := docstring.parameters.get(field.name)) is not None:
                schema.setdefault("description", text)
            if (default := _field_default(field)) is not UNSET:
                schema["default"] = default
            fields[field.encode_name] = schema
        required = [field.encode_name for field in info.fields if field.required]
        described: JsonObject = {"description": docstring.description} if docstring.description else {}
        tag = getattr(info, "tag", None)
        if isinstance(info, types.NamedTupleType) or getattr(info, "array_like", False):
            items = [*([_enum([tag])] if tag is not None else []), *fields.values()]
            least = len(required) + (tag is not None)
            return {**described, "type": "array", "prefixItems": items, "minItems": least, "maxItems": len(items)}
        if tag is not None:
            fields = {info.tag_field: _enum([tag]), **fields}
            required = [info.tag_field, *required]
        closed = {"additionalProperties": False} if getattr(info, "forbid_unknown_fields", False) else {}
        return {**described, "type": "object", "properties": fields, "required": required, **closed}

    def finish(self, root: JsonObject) -> JsonObject:
        """Put definitions that are used once where they are used, and the others beside the root."""
        once = {name for name, uses in self._uses.items() if uses == 1}
        root = _replace_references(root, lambda name: self._definitions[name] if name in once else None)
        shared = {name: schema for name, schema in self._definitions.items() if name not in once}
        if shared:
            root["$defs"] = {
                name: _replace_references(schema, lambda name: self._definitions[name] if name in once else None)
                for name, schema in shared.items()
            }
        return root


def _replace_references(schema: JsonValue, replacement: Callable[[str], JsonObject | None]) -> JsonValue:
    if is_array(schema):
        return [_replace_references(item, replacement) for item in schema]
    if not is_object(schema):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and (found := replacement(reference.removeprefix(_DEFINITIONS))) is not None:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**found, **rest}
    return {key: _replace_references(value, replacement) for key, value in schema.items()}


def _plain(info: types.Type) -> JsonObject:
    if isinstance(info, types.BytesType | types.ByteArrayType | types.MemoryViewType):
        return {"type": "string", "contentEncoding": "base64"}
    name = _JSON_TYPES[type(info)]
    schema: JsonObject = {} if name is None else {"type": name}
    naive = isinstance(info, types.DateTimeType) and info.tz is False
    if (text_format := _FORMATS.get(type(info))) is not None and not naive:
        schema["format"] = text_format
    return schema


def _typed(values: Iterable[Any]) -> frozenset[tuple[str, Any]]:
    return frozenset([(type(value).__name__, value) for value in values])  # as True == 1


def _enum(values: list[Any]) -> JsonObject:
    names = list(dict.fromkeys(json_type(value) for value in values))
    return {"type": names[0] if len(names) == 1 else names, "enum": values}


def _literals_in(annotations: Iterable[Any]) -> list[tuple[Any, ...]]:
    # Every Literal in some annotations and in the fields of the classes they name, in source order.
    found: list[tuple[Any, ...]] = []
    waiting = list(annotations)
    for info in types.multi_type_info(annotations):
        for part in subtypes(info):
            if isinstance(part, types.StructType | types.DataclassType | types.TypedDictType | types.NamedTupleType):
                with suppress(NameError):  # of a class inside a function; its literals come sorted
                    waiting += typing.get_type_hints(get_origin(part.cls) or part.cls, include_extras=True).values()
    while waiting:
        annotation = waiting.pop(0)
        if get_origin(annotation) is Literal:
            found.append(get_args(annotation))
        else:
            waiting += get_args(annotation)
    return found
