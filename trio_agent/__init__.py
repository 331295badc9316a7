"""Structured concurrency for LLM agents, on Trio."""
