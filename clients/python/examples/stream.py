"""The answer as it comes, and the tool calls in between; Ctrl-C stops the run."""

import asyncio
import sys

from agentd_client import Agentd, AgentdError


async def main() -> None:
    async with await Agentd.spawn(args=["--no-session"]) as agentd:
        session = await agentd.current_session()
        async with session.prompt(sys.argv[1] if len(sys.argv) > 1 else "How many files are there?") as run:
            async for event in run:
                if event["type"] == "message_update":
                    update = event["assistantMessageEvent"]
                    if update["type"] == "text_delta":
                        print(update["delta"], end="", flush=True)
                elif event["type"] == "tool_execution_start":
                    print(f"\n[{event['toolName']}] {event['args']}")
            result = await run.result()
        print(f"\n{result.turns} answers, {result.usage.output} tokens, ${result.usage.cost_usd:.4f}")


try:
    asyncio.run(main())
except AgentdError as error:
    sys.exit(f"{error.code}: {error} {error.hint or ''}")
