"""Each test of the driver runs with every HTTP client that has the interface, and with the one that it makes itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import pytest

from trio_agent.providers import ModelClient

OpenClient: TypeAlias = Callable[..., AbstractAsyncContextManager[ModelClient]]


@pytest.fixture(params=["own", "httpx", "httpx2"])
def open_client(request: pytest.FixtureRequest) -> OpenClient:
    """Opens a ``ModelClient`` that sends with one of the clients; it makes no request twice unless told to."""
    name: str = request.param
    package = None if name == "own" else pytest.importorskip(name)

    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncGenerator[ModelClient]:
        settings = {"retries": None, **settings}
        if package is None:
            async with ModelClient(**settings) as client:
                yield client
        else:
            limits = package.Limits(max_connections=None)
            async with (
                package.AsyncClient(limits=limits, trust_env=False) as http_client,
                ModelClient(http_client=http_client, **settings) as client,
            ):
                yield client

    return opened
