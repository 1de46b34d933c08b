"""The socket's path; that agentctl says the same is tested with the real one."""

import os
import unittest

from agentd_client import AgentdError, socket_path


class SocketPath(unittest.TestCase):
    def test_variables(self) -> None:
        for env, expected in (
            ({"HOME": "/h"}, "/h/.agentd/run/agentd.sock"),
            ({"HOME": "/h", "AGENTD_DIR": "~/a"}, "/h/a/run/agentd.sock"),
            ({"HOME": "/h", "AGENTD_DIR": "", "PI_CODING_AGENT_DIR": "b"}, "/cwd/b/run/agentd.sock"),
            ({"HOME": "/h", "AGENTD_SOCKET": "~/s"}, "/h/s"),
            ({"HOME": "/h", "AGENTD_SOCKET": "s"}, "/cwd/s"),
            ({"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/7"}, "/run/user/7/agentd/agentd.sock"),
            ({"HOME": "/h", "XDG_RUNTIME_DIR": "relative"}, "/h/.agentd/run/agentd.sock"),
        ):
            self.assertEqual(socket_path(env, "/cwd"), expected, env)

    def test_a_path_that_is_too_long_moves_to_the_temporary_directory(self) -> None:
        long = "/" + "x" * 120
        name = rf"agentd-{os.getuid()}/agentd-[0-9a-f]{{8}}\.sock"
        self.assertRegex(socket_path({"AGENTD_DIR": long, "TMPDIR": "/t"}, "/cwd"), f"^/t/{name}$")
        self.assertRegex(socket_path({"AGENTD_DIR": long, "TMPDIR": long}, "/cwd"), f"^/tmp/{name}$")

    def test_without_a_home_there_is_none(self) -> None:
        with self.assertRaises(AgentdError) as caught:
            socket_path({}, "/cwd")
        self.assertIn("AGENTD_DIR", caught.exception.hint or "")


if __name__ == "__main__":
    unittest.main()
