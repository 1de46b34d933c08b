"""The user is asked before a command runs."""

import sys
from typing import TYPE_CHECKING

from agentd_client.sync import Agentd, ClientOptions, Denied, QuestionHandlers

if TYPE_CHECKING:
    from agentd_client.protocol import PermissionAnswer, PermissionQuestion


def may_run(question: "PermissionQuestion") -> "PermissionAnswer | Denied":
    print(f"{question['title']} [y/n] ", end="", file=sys.stderr, flush=True)
    return "once" if sys.stdin.readline().strip() == "y" else Denied("The user does not want that.")


options = ClientOptions(questions=QuestionHandlers(on_permission=may_run))
with Agentd.spawn(args=["--no-session", "--permissions", "workspace"], options=options) as agentd:
    session = agentd.current_session()
    print(session.ask(sys.argv[1] if len(sys.argv) > 1 else "Build the project."))
