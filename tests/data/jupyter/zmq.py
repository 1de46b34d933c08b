"""What a client of Jupyter uses of pyzmq, over pipes: stands in for it in tests."""
import select

POLLIN = 1


class Poller:
    def __init__(self):
        self.sources = {}

    def register(self, source, _flags):
        self.sources[source if isinstance(source, int) else source.fileno()] = source

    def poll(self, _timeout=None):
        ready, _, _ = select.select(list(self.sources), [], [])
        return [(self.sources[number], POLLIN) for number in ready]
