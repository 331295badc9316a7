"""Real models over HTTP: the driver, the providers as data, and the keys.

Above the wire formats, below the loop, and the only place that knows an HTTP client, which is loaded with the first
request.
"""

from trio_agent.providers._catalog import PROVIDERS as PROVIDERS
from trio_agent.providers._catalog import Provider as Provider
from trio_agent.providers._catalog import find_model as find_model
from trio_agent.providers._catalog import openai_compatible as openai_compatible
from trio_agent.providers._client import ModelClient as ModelClient
from trio_agent.providers._client import stream as stream
from trio_agent.providers._connections import AsyncHTTPClient as AsyncHTTPClient
from trio_agent.providers._connections import AsyncHTTPResponse as AsyncHTTPResponse
from trio_agent.providers._settings import HTTPRequest as HTTPRequest
from trio_agent.providers._settings import HTTPResponse as HTTPResponse
from trio_agent.providers._settings import RequestHook as RequestHook
from trio_agent.providers._settings import ResponseHook as ResponseHook
