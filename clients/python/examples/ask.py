"""One question, one answer: python3 ask.py "What is in this folder?" """

import sys

from agentd_client.sync import Agentd

with Agentd.spawn(args=["--no-session"]) as agentd:
    session = agentd.current_session()
    print(session.ask(sys.argv[1] if len(sys.argv) > 1 else "What is in this folder?"))
