"""Calls of functions that a program gives us: coroutine functions, or plain ones that may block."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """Calls a function and waits for what it gives.

    A plain function runs in a thread, so that it may block; cancelling does not end it, and its result is dropped.
    """
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):
        return await function(*args)
    result = await asyncio.to_thread(function, *args)
    return await result if inspect.isawaitable(result) else result
