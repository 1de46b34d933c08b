"""Serves a folder on a free port of the loopback interface, whose number is the first line of stdout."""

import functools
import http.server
import sys


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=sys.argv[1]))
print(server.server_port, flush=True)
server.serve_forever()
