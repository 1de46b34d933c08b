"""What agentd sends to a collector, read by OpenTelemetry's own definitions: the protocol's, and the names of the semantic conventions."""

import base64
import http.server
import json
import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.schemas import Schemas

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from support import AGENTD, Home  # noqa: E402

REQUESTS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}

# Of the conventions after the version that the schema URL names.
LATER = {"gen_ai.execute_tool.duration", "gen_ai.invoke_agent.duration"}


def words(module: object) -> set[str]:
    return {value for name, value in vars(module).items() if name.startswith("GEN_AI") and isinstance(value, str)}


class Collector:
    """A collector on a free port of this machine, which keeps what it gets; a context manager."""

    def __enter__(self) -> "Collector":
        self.got: list[tuple[str, str, bytes]] = []
        got = self.got

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                got.append((self.path, self.headers["content-type"], body))
                answer = b"{}" if "json" in self.headers["content-type"] else b""
                self.send_response(200)
                self.send_header("content-type", self.headers["content-type"])
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def binary_ids(value: object) -> object:
    """OTLP writes ids in JSON as hexadecimal digits, where Protocol Buffers have Base64."""
    if isinstance(value, dict):
        ids = {"traceId", "spanId", "parentSpanId"}
        return {
            key: base64.b64encode(bytes.fromhex(of)).decode() if key in ids else binary_ids(of) for key, of in value.items()
        }
    return [binary_ids(of) for of in value] if isinstance(value, list) else value


def parse(path: str, content_type: str, body: bytes) -> Message:
    request = REQUESTS[path]()
    if content_type == "application/x-protobuf":
        request.ParseFromString(body)
    else:
        assert content_type == "application/json", content_type
        # A field that the definitions do not have fails.
        json_format.ParseDict(binary_ids(json.loads(body)), request)
    assert_known(request)
    return request


def assert_known(message: Message) -> None:
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in value if field.is_repeated else [value]:
                assert_known(part)


def run(protocol: str) -> dict[str, list[Message]]:
    with Home() as home, Collector() as collector:
        script = Path(home.root / "script.json")
        steps = json.loads(script.read_text())["steps"]
        for step in steps:
            step["emit"].append({"usage": {"input": 20, "output": 4}})
        script.write_text(json.dumps({"steps": steps}))
        settings = Path(home.root / "agent/settings.json")
        telemetry = {"endpoint": collector.endpoint, "protocol": protocol, "captureContent": True}
        settings.write_text(json.dumps(json.loads(settings.read_text()) | {"telemetry": telemetry}))
        done = subprocess.run(
            [AGENTD, "-p", "use a tool"], cwd=home.project, env=home.env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "It said hi.\n", done.stdout
        found: dict[str, list[Message]] = {path: [] for path in REQUESTS}
        for path, content_type, body in collector.got:
            found[path].append(parse(path, content_type, body))
        return found


class Otlp(unittest.TestCase):
    def check(self, protocol: str) -> None:
        found = run(protocol)
        scopes = [scope for request in found["/v1/traces"] for of in request.resource_spans for scope in of.scope_spans]
        spans = [span for scope in scopes for span in scope.spans]
        self.assertEqual(
            sorted(span.name for span in spans),
            ["chat one", "chat one", "execute_tool bash", "invoke_agent agentd", "turn", "turn"],
        )
        self.assertEqual({scope.schema_url for scope in scopes}, {Schemas.V1_41_0.value})
        by_id = {span.span_id: span for span in spans}
        self.assertEqual(len({span.trace_id for span in spans}), 1)
        for span in spans:
            self.assertEqual((len(span.trace_id), len(span.span_id)), (16, 8))
            self.assertLessEqual(span.start_time_unix_nano, span.end_time_unix_nano)
            self.assertEqual(span.status.code, Status.STATUS_CODE_UNSET)
            kind = Span.SPAN_KIND_CLIENT if span.name.startswith("chat") else Span.SPAN_KIND_INTERNAL
            self.assertEqual(span.kind, kind)
            if span.parent_span_id:
                parent = by_id[span.parent_span_id]
                self.assertLessEqual(parent.start_time_unix_nano, span.start_time_unix_nano)
            names = [attribute.key for attribute in span.attributes]
            self.assertEqual(len(names), len(set(names)), "a key stands once")
            unknown = {name for name in names if name.startswith("gen_ai.")} - words(gen_ai_attributes)
            self.assertEqual(unknown, set(), span.name)
        content = {
            attribute.key: attribute.value.string_value for span in spans for attribute in span.attributes if attribute.key.endswith(".messages")
        }
        for text in content.values():
            for message in json.loads(text):
                self.assertIn(message["role"], ("system", "user", "assistant", "tool"))
                self.assertTrue(all("type" in part for part in message["parts"]))

        metrics = [
            metric
            for request in found["/v1/metrics"]
            for of in request.resource_metrics
            for scope in of.scope_metrics
            for metric in scope.metrics
        ]
        names = {metric.name for metric in metrics}
        self.assertIn("gen_ai.client.token.usage", names)
        unknown = {name for name in names if name.startswith("gen_ai.")} - words(gen_ai_metrics) - LATER
        self.assertEqual(unknown, set())
        for metric in metrics:
            self.assertTrue(metric.unit and metric.description, metric.name)
            kind = metric.WhichOneof("data")
            points = getattr(metric, kind).data_points
            self.assertTrue(points, metric.name)
            for point in points:
                self.assertLessEqual(point.start_time_unix_nano, point.time_unix_nano)
                if kind == "histogram":
                    self.assertEqual(sum(point.bucket_counts), point.count)
                    self.assertEqual(len(point.bucket_counts), len(point.explicit_bounds) + 1)
                    self.assertEqual(list(point.explicit_bounds), sorted(point.explicit_bounds))
                    self.assertLessEqual(point.min, point.max)

    def test_protocol_buffers(self) -> None:
        self.check("http/protobuf")

    def test_json(self) -> None:
        self.check("http/json")


if __name__ == "__main__":
    assert os.environ["AGENTD_BIN_DIR"]
    unittest.main()
