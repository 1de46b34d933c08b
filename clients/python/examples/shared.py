"""One session of the user's daemon, watched by a second client while the first one works in it."""

import asyncio
import sys

from agentd_client import Agentd, ClientOptions, Session


async def watch(session: Session, ready: asyncio.Event) -> None:
    events = session.events()
    ready.set()
    async for event in events:
        if event["type"] == "tool_execution_start":
            print(f"watcher: {event['toolName']}")
        elif event["type"] == "agent_settled":
            break


async def main() -> None:
    async with (
        await Agentd.connect(start=True, options=ClientOptions(name="worker")) as worker,
        await Agentd.connect(options=ClientOptions(name="watcher", role="observe")) as watcher,
    ):
        session = await worker.open_session(ephemeral=True)
        ready = asyncio.Event()
        watching = asyncio.create_task(watch(await watcher.attach_session(session.id), ready))
        await ready.wait()
        answer = await session.ask(sys.argv[1] if len(sys.argv) > 1 else "How many files are there?")
        await watching
        print(f"worker: {answer}")
        await session.close()


asyncio.run(main())
