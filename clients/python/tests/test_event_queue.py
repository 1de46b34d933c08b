"""Queues of events, and what they mean for the connection."""

import asyncio
import unittest

from agentd_client import AgentdError, EventQueue
from agentd_client._event_queue import Flow


def is_readable(flow: Flow) -> bool:
    return flow._readable.is_set()


class Queues(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        # The loop of a test tells of slow callbacks, which say something of the machine alone.
        asyncio.get_running_loop().slow_callback_duration = 60

    async def test_a_full_queue_stops_reading_until_half_of_it_is_read(self) -> None:
        flow = Flow()
        queue: EventQueue[int] = EventQueue(flow, 4)
        for number in range(3):
            queue.push(number)
        self.assertTrue(is_readable(flow))
        queue.push(3)
        self.assertFalse(is_readable(flow))
        self.assertEqual(await queue.__anext__(), 0)
        self.assertFalse(is_readable(flow))
        self.assertEqual(await queue.__anext__(), 1)
        self.assertTrue(is_readable(flow))

    async def test_a_command_without_an_answer_keeps_reading(self) -> None:
        flow = Flow()
        queue: EventQueue[int] = EventQueue(flow, 1)
        queue.push(0)
        flow.set_open_calls(1)
        self.assertTrue(is_readable(flow))
        flow.set_open_calls(0)
        self.assertFalse(is_readable(flow))
        queue.close()
        self.assertTrue(is_readable(flow))

    async def test_a_result_that_is_awaited_keeps_reading(self) -> None:
        flow = Flow()
        queue: EventQueue[int] = EventQueue(flow, 1)
        queue.push(0)
        with flow.hold():
            self.assertTrue(is_readable(flow))
        self.assertFalse(is_readable(flow))

    async def test_events_come_before_the_error_which_comes_once(self) -> None:
        queue: EventQueue[int] = EventQueue(Flow(), 8)
        queue.push(1)
        queue.finish(AgentdError("connection_lost", "gone"))
        self.assertEqual(await queue.__anext__(), 1)
        with self.assertRaises(AgentdError):
            await queue.__anext__()
        self.assertEqual([item async for item in queue], [])

    async def test_a_reader_that_never_comes_is_told_that_events_were_dropped(self) -> None:
        queue: EventQueue[int] = EventQueue(Flow(), 8)
        for number in range(100_000):
            queue.push(number)
        with self.assertRaises(AgentdError) as caught:
            await queue.__anext__()
        self.assertEqual(caught.exception.code, "too_slow")

    async def test_a_waiting_reader_gets_the_event(self) -> None:
        queue: EventQueue[int] = EventQueue(Flow(), 8)
        reading = asyncio.ensure_future(queue.__anext__())
        await asyncio.sleep(0)
        queue.push(1)
        self.assertEqual(await reading, 1)


if __name__ == "__main__":
    unittest.main()
