"""Lines of bytes."""

from __future__ import annotations

from collections.abc import Iterator

from ._error import AgentdError

DEFAULT_MAX_LINE_BYTES = 256 * 1024 * 1024
"""The longest line that is read by default: a session of many images in one answer fits."""


class LineSplitter:
    """Splits a stream of bytes into lines.

    Lines end with LF alone; one CR before it is dropped. Bytes are decoded when a line is complete, so that a character may
    be split between two chunks. The work is linear in the number of bytes, whatever their chunks are.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._parts: list[bytes] = []
        self._bytes = 0
        self._max_bytes = max_bytes

    def push(self, chunk: bytes) -> Iterator[str]:
        """Takes a chunk, and gives the lines that it completes, without their ends. Empty lines are left out.

        Raises AgentdError (`too_large`) when a line is longer than the limit.
        """
        begin = 0
        while (end := chunk.find(b"\n", begin)) != -1:
            self._keep(chunk[begin:end])
            begin = end + 1
            line = self._take()
            if line:
                yield line
        self._keep(chunk[begin:])

    @property
    def is_inside(self) -> bool:
        """Whether the stream stands in the middle of a line."""
        return self._bytes > 0

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._bytes += len(part)
        if self._bytes > self._max_bytes:
            raise AgentdError(
                "too_large",
                f"A line is longer than {self._max_bytes} bytes.",
                hint="Raise the argument max_line_bytes.",
            )
        self._parts.append(part)

    def _take(self) -> str:
        line = b"".join(self._parts)
        self._parts = []
        self._bytes = 0
        return line.removesuffix(b"\r").decode("utf-8", "replace")
