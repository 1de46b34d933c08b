"""Lines out of bytes, however they are cut."""

import unittest

from agentd_client import AgentdError, LineSplitter


def lines(text: str, size: int, splitter: LineSplitter) -> list[str]:
    """The lines of chunks that are cut at every `size` bytes."""
    data = text.encode()
    chunks = (data[at : at + size] for at in range(0, len(data), size))
    return [line for chunk in chunks for line in splitter.push(chunk)]


class Lines(unittest.TestCase):
    def test_characters_survive_being_split_whatever_the_chunks_are(self) -> None:
        text = '{"a":"ä€😀"}\n{"b":"\u2028\u2029"}\n'
        for size in range(1, len(text.encode()) + 1):
            splitter = LineSplitter()
            self.assertEqual(lines(text, size, splitter), ['{"a":"ä€😀"}', '{"b":"\u2028\u2029"}'], size)
            self.assertFalse(splitter.is_inside)

    def test_one_cr_before_the_lf_is_dropped_others_stay_and_empty_lines_are_left_out(self) -> None:
        for size in (1, 2, 3, 100):
            self.assertEqual(lines("a\r\nb\r\r\n\n\r\nc\rd\n", size, LineSplitter()), ["a", "b\r", "c\rd"], size)

    def test_a_line_without_an_end_is_kept_for_later(self) -> None:
        splitter = LineSplitter()
        self.assertEqual(list(splitter.push(b"a\nb")), ["a"])
        self.assertTrue(splitter.is_inside)
        self.assertEqual(list(splitter.push(b"c\n")), ["bc"])

    def test_a_line_of_32_mib_in_small_chunks_comes_whole(self) -> None:
        found = lines("x" * (32 << 20) + "\nshort\n", 4096, LineSplitter())
        self.assertEqual([len(line) for line in found], [32 << 20, 5])

    def test_a_longer_line_than_allowed_is_refused(self) -> None:
        with self.assertRaises(AgentdError) as caught:
            lines("123456", 1, LineSplitter(5))
        self.assertEqual(caught.exception.code, "too_large")
        self.assertEqual(lines("12345\n", 1, LineSplitter(5)), ["12345"])


if __name__ == "__main__":
    unittest.main()
