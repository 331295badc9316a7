"""Which key a request is sent with, and where it comes from.

In this order: ``StreamOptions.api_key``, which is also where the loop puts what the ``get_api_key`` hook gives; the
keys of the ``ModelClient``; the environment variable of the provider. An empty key means that none is to be sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from trio_agent._errors import MissingKeyError
from trio_agent._models import Model, StreamOptions
from trio_agent.providers._catalog import PROVIDERS, key_variables
from trio_agent.wire import merge_headers

__all__ = ["SECRET_HEADERS", "Authorized", "authorize"]

SECRET_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "cf-aig-authorization", "cookie"}
)
"""Headers that hold keys."""

_SHORTEST_SECRET: Final = 8


@dataclass(frozen=True, slots=True)
class Authorized:
    """A request that may be sent. Its repr shows neither.

    Attributes:
        options: with the key.
        secrets: what must not be seen in texts.
    """

    options: StreamOptions = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def authorize(
    model: Model, options: StreamOptions, api_keys: Mapping[str, str], environment: Mapping[str, str]
) -> Authorized:
    """Add the key to the options of a request.

    Args:
        model: that is asked.
        options: as given.
        api_keys: keys by provider.
        environment: variables by name.

    Raises:
        MissingKeyError: there is none although the provider wants one, or it cannot be a key.
    """
    key = options.api_key if options.api_key is not None else api_keys.get(model.provider)
    if key is None and not _secret_values(model, options):
        key, options = _from_environment(model, options, environment)
    key = (key or "").strip()
    secrets = [value for value in (key, *_secret_values(model, options)) if value]
    if not all(value.isascii() and value.isprintable() for value in secrets):
        # HTTP clients would refuse the header, and quote it.
        raise MissingKeyError(f"The API key for provider {model.provider!r} has characters that no key has")
    words = {word for value in secrets for word in (value, value.rpartition(" ")[2])}
    # What is shorter is a dummy for a local server; to replace it in texts would only spoil them.
    hidden = sorted((word for word in words if len(word) >= _SHORTEST_SECRET), key=len, reverse=True)
    return Authorized(msgspec.structs.replace(options, api_key=key or None), tuple(hidden))


def _from_environment(
    model: Model, options: StreamOptions, environment: Mapping[str, str]
) -> tuple[str | None, StreamOptions]:
    provider = PROVIDERS.get(model.provider)
    variables = key_variables(model.provider)
    for variable in variables:
        if environment.get(variable):
            return environment[variable], options
    for variable in provider.token_variables if provider else ():
        if environment.get(variable):
            bearer = {"authorization": f"Bearer {environment[variable].strip()}"}
            return None, msgspec.structs.replace(options, headers={**bearer, **(options.headers or {})})
    if provider is not None and provider.needs_key:
        raise MissingKeyError(
            f"No API key for provider {model.provider!r}: set {' or '.join(variables)} in the environment, "
            "or give StreamOptions(api_key=...) or the hook get_api_key"
        )
    return None, options


def _secret_values(model: Model, options: StreamOptions) -> list[str]:
    headers = merge_headers(model.headers, options.headers)
    return [headers[name] for name in SECRET_HEADERS & headers.keys()]
