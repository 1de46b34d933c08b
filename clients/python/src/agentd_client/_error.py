"""The error of this library."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._results import RunResult


class AgentdError(Exception):
    """A command, a run or a connection that failed.

    `code` is for programs. It is one of the protocol's codes (`agentd_client.protocol.ErrorCode`), or one of this library's:

    - `not_started`: no daemon runs, or the program does not start;
    - `connection_lost`: the connection ended before the answer came, and could not be used again;
    - `closed`: the client was closed, or the session was;
    - `too_slow`: events were not read for so long that they were dropped;
    - `bad_answer`: the model gave no answer that fits the schema;
    - `protocol`: what came is not agentd's protocol.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        command: str | None = None,
        result: RunResult | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        """The kind of the failure."""
        self.message = message
        """The failure, for people."""
        self.hint = hint
        """What to do about it; None where nothing is known to help."""
        self.command = command
        """The `type` of the command that failed; None where it was no command."""
        self.result = result
        """The run that failed, as far as it came."""

    def again(self, command: str | None = None) -> AgentdError:
        """The same failure, to be raised at another place."""
        error = AgentdError(self.code, self.message, hint=self.hint, command=command, result=self.result)
        error.__cause__ = self
        return error
