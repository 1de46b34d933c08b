//! A provider that answers, refuses or breaks off looks the same to users over every provider API.

use std::fs;

use agentd_e2e::{Home, MockServer, Reply, ctl, ctl::Finished};
use serde_json::{Value, json};

use self::bodies::{Content, body};
use crate::support::{answers, assert_says, kinds, text};

#[path = "../../daemon/crates/ai/examples/stream_speed/bodies.rs"]
mod bodies;

/// A provider API, and the form of its vendor's errors.
pub(crate) struct Api {
    pub(crate) name: &'static str,
    /// The path of the `baseUrl`.
    pub(crate) at: &'static str,
    pub(crate) key: &'static str,
    /// The body of a refusal: status, kind, message.
    pub(crate) refusal: fn(u16, &str, &str) -> Value,
}

const KEY: &str = "test-key-1234";

/// A token that names an account: `{"https://api.openai.com/auth": {"chatgpt_account_id": "a"}}`.
const CHATGPT_TOKEN: &str =
    "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYSJ9fQ.c2lnbmF0dXJl";

fn openai(_: u16, kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
}

fn anthropic(_: u16, kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn aws(_: u16, _: &str, message: &str) -> Value {
    json!({"message": message})
}

fn google(status: u16, kind: &str, message: &str) -> Value {
    json!({"error": {"code": status, "message": message, "status": kind}})
}

fn mistral(_: u16, kind: &str, message: &str) -> Value {
    json!({"object": "error", "message": message, "type": kind, "code": null})
}

pub(crate) const APIS: &[Api] = &[
    Api { name: "anthropic-messages", at: "", key: KEY, refusal: anthropic },
    Api { name: "azure-openai-responses", at: "/openai/v1", key: KEY, refusal: openai },
    Api { name: "bedrock-converse-stream", at: "", key: KEY, refusal: aws },
    Api { name: "google-generative-ai", at: "/v1beta", key: KEY, refusal: google },
    Api { name: "google-vertex", at: "/v1/projects/p/locations/us-east1", key: KEY, refusal: google },
    Api { name: "mistral-conversations", at: "", key: KEY, refusal: mistral },
    Api { name: "openai-codex-responses", at: "/backend-api", key: CHATGPT_TOKEN, refusal: openai },
    Api { name: "openai-completions", at: "/v1", key: KEY, refusal: openai },
    Api { name: "openai-responses", at: "/v1", key: KEY, refusal: openai },
    Api { name: "pi-messages", at: "/v1", key: KEY, refusal: openai },
];

impl Api {
    /// A home whose only model is behind `server`.
    pub(crate) fn home(&self, server: &MockServer) -> Home {
        let home = Home::new();
        let address = server.base_url().trim_end_matches("/v1").to_owned() + self.at;
        home.configure(&json!({"providers": {"p": {"api": self.name, "baseUrl": address, "apiKey": self.key,
            "models": [{"id": "m", "contextWindow": 200_000, "maxTokens": 8000}]}}}));
        home.settings(
            &json!({"retry": {"baseDelayMs": 1, "maxRetries": 2}, "compaction": {"enabled": false}}),
        );
        home
    }

    /// The body of an answer with this text, in two pieces.
    pub(crate) fn text(&self, text: &str) -> Vec<u8> {
        let (start, end) = text.split_at(text.len() / 2);
        self.body(Content::Text, &mut [start, end].into_iter().map(str::to_owned))
    }

    fn body(&self, content: Content, pieces: &mut dyn Iterator<Item = String>) -> Vec<u8> {
        body(self.name, content, pieces).unwrap_or_else(|| panic!("no answers of {}", self.name))
    }

    pub(crate) fn reply(&self, body: impl AsRef<[u8]>) -> Reply {
        let frames = "application/vnd.amazon.eventstream";
        Reply::status(200, if self.is_binary() { frames } else { "text/event-stream" }, body)
    }

    pub(crate) fn is_binary(&self) -> bool {
        self.name == "bedrock-converse-stream"
    }

    pub(crate) fn refuse(&self, status: u16, kind: &str, message: &str) -> Reply {
        let body = (self.refusal)(status, kind, message).to_string();
        Reply::status(status, "application/json", body).header("x-amzn-errortype", kind)
    }

    /// Runs one prompt; returns its output and the number of requests.
    pub(crate) fn ask(&self, replies: impl IntoIterator<Item = Reply>) -> (Finished, usize) {
        let server = MockServer::start(replies);
        let home = self.home(&server);
        let done = ctl::run(&home, &["prompt", "Hello?"]);
        let requests = server.requests();
        for file in home.session_files() {
            let kept = fs::read_to_string(file).expect("a session file");
            assert!(!kept.contains(self.key), "{}: the key is in the file", self.name);
        }
        assert!(
            !done.stderr.contains(self.key) && !done.stdout.contains(self.key),
            "{}: {done:?}",
            self.name
        );
        (done, requests.len())
    }

    pub(crate) fn fails(&self, replies: impl IntoIterator<Item = Reply>, requests: usize, parts: &[&str]) {
        let (done, count) = self.ask(replies);
        assert_eq!((done.code, count), (1, requests), "{}: {done:?}", self.name);
        let last = done.stderr.lines().rfind(|line| line.starts_with("Error: "));
        let last = last.unwrap_or_else(|| panic!("{}: {done:?}", self.name));
        assert_says(last, parts);
    }

    pub(crate) fn answers(&self, replies: impl IntoIterator<Item = Reply>, requests: usize) -> Finished {
        let (done, count) = self.ask(replies);
        let expected = (0, "Here I am.\n", requests);
        assert_eq!((done.code, done.stdout.as_str(), count), expected, "{}: {done:?}", self.name);
        done
    }

    pub(crate) fn here(&self) -> Reply {
        self.reply(self.text("Here I am."))
    }
}

/// The events as the body of a stream.
pub(crate) fn stream(events: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    events.iter().for_each(|data| bodies::event(data, &mut out));
    out
}

/// The frames as the body of a Bedrock stream.
pub(crate) fn frames(frames: &[(&str, Value)]) -> Vec<u8> {
    let mut out = Vec::new();
    frames.iter().for_each(|(kind, data)| bodies::frame(kind, data, &mut out));
    out
}

#[test]
fn every_api_plays_back_without_server_and_key() {
    for api in APIS {
        let server = MockServer::start([api.here()]);
        let home = api.home(&server);
        let folder = home.root().join("recordings").display().to_string();
        let recorded = ctl::run(&home, &["prompt", "--record", &folder, "Hello?"]);
        assert_eq!(
            (recorded.code, recorded.stdout.as_str()),
            (0, "Here I am.\n"),
            "{}: {recorded:?}",
            api.name
        );
        for file in fs::read_dir(&folder).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(text.contains(api.name) && !text.contains(api.key), "{}: {text}", api.name);
        }
        drop(server);
        home.configure(&json!({"providers": {"p": {"api": api.name, "baseUrl": "http://127.0.0.1:9", "apiKey": "$NO_SUCH_KEY",
            "models": [{"id": "m", "contextWindow": 200_000, "maxTokens": 8000}]}}}));
        let played = ctl::run(&home, &["prompt", "--replay", &folder, "Hello?"]);
        assert_eq!((played.code, played.stdout.as_str()), (0, "Here I am.\n"), "{}: {played:?}", api.name);
    }
}

#[test]
fn no_api_is_left_out() {
    let registry = fs::read_to_string(agentd_e2e::binaries::workspace().join("daemon/crates/ai/src/fuzz.rs"));
    let registry = registry.expect("the list of all HTTP APIs");
    let (_, list) = registry.split_once("pub const APIS: &[&str] =").expect("the list");
    let (list, _) = list.split_once(';').expect("its end");
    let all: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    let mut ours: Vec<&str> = APIS.iter().map(|api| api.name).collect();
    ours.sort_unstable();
    assert_eq!(ours, all, "add what is missing to `APIS` in tests/e2e/every_api.rs");
}

#[test]
fn an_answer_is_an_answer() {
    for api in APIS {
        let done = api.answers([api.here()], 1);
        assert_eq!(done.stderr, "", "{}", api.name);
        if !api.is_binary() {
            // Some gateways repeat the end, and some send more after it.
            let end = "data: [DONE]\n\ndata: [DONE]\n\n: bye\n\n";
            api.answers([api.reply([api.text("Here I am."), end.into()].concat())], 1);
        }
    }
}

#[test]
fn a_permanent_failure_is_asked_once() {
    for api in APIS {
        let secret = format!("The key {} is not valid", api.key);
        let refused = api.refuse(401, "UnrecognizedClientException", &secret);
        api.fails([refused, api.here()], 1, &["The key [redacted] is not valid"]);
        let unknown = api.refuse(404, "ResourceNotFoundException", "no model m here");
        api.fails([unknown, api.here()], 1, &["no model m here"]);
        let bad = api.refuse(400, "ValidationException", "max_tokens is too odd");
        api.fails([bad, api.here()], 1, &["max_tokens is too odd"]);
    }
}

#[test]
fn a_temporary_failure_is_asked_again() {
    for api in APIS {
        let busy = || api.refuse(503, "ServiceUnavailableException", "Try later");
        let done = api.answers([busy(), api.here()], 2);
        assert_says(&done.stderr, &["Try later", "(retry 1 of 2)"]);
        api.fails([busy(), busy(), busy()], 3, &["Try later"]);
        let limit = api.refuse(429, "ThrottlingException", "Too many requests").header("Retry-After", "0.02");
        api.answers([limit, api.here()], 2);
        api.answers([Reply::hang_up(), api.here()], 2);
    }
}

#[test]
fn web_pages_are_no_answers() {
    let page = "<!DOCTYPE html>\n<html><body><h1>Welcome</h1></body></html>\n";
    for api in APIS {
        api.fails(
            [Reply::status(200, "text/html", page), api.here()],
            1,
            &["answered with a web page", "Check the baseUrl"],
        );
        let done = api.answers([Reply::status(502, "text/html", page), api.here()], 2);
        assert_says(&done.stderr, &["(retry 1 of 2)"]);
    }
}

#[test]
fn an_answer_that_ends_too_early_is_no_answer() {
    for api in APIS {
        let whole = api.text("Half of it.");
        let place = whole.windows(5).position(|bytes| bytes == b"of it").expect("the second piece");
        // The stream breaks off in the middle of an event, after the first piece.
        let torn = || api.reply(&whole[..place + 2]);
        let done = api.answers_with(&[torn(), api.here()]);
        let told = answers(&done);
        assert_eq!(told.len(), 2, "{}: {:?}", api.name, kinds(&done));
        assert_eq!(
            (text(told[0]).as_str(), &told[0]["stopReason"]),
            ("Half ", &json!("error")),
            "{}",
            api.name
        );
        assert_eq!(
            (text(told[1]).as_str(), &told[1]["stopReason"]),
            ("Here I am.", &json!("stop")),
            "{}",
            api.name
        );
        assert!(kinds(&done).contains(&"auto_retry_start"), "{}", api.name);
    }
}

impl Api {
    /// The events of a run that succeeds.
    pub(crate) fn answers_with(&self, replies: &[Reply]) -> Vec<Value> {
        let server = MockServer::start(replies.iter().cloned());
        let home = self.home(&server);
        self.events(&home)
    }

    pub(crate) fn events(&self, home: &Home) -> Vec<Value> {
        let done = ctl::run(home, &["prompt", "--json", "Hello?"]);
        assert_eq!(done.code, 0, "{}: {done:?}", self.name);
        done.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

#[test]
fn arguments_come_in_one_piece_or_in_ten_thousand() {
    let content = "line of text\n".repeat(2500);
    let arguments = json!({"path": "a.txt", "content": content}).to_string();
    for api in APIS {
        for size in [arguments.len(), 3] {
            let mut pieces =
                arguments.as_bytes().chunks(size).map(|piece| String::from_utf8_lossy(piece).into_owned());
            let call = api.body(Content::Arguments, &mut pieces);
            let server = MockServer::start([api.reply(&call), api.here()]);
            let home = api.home(&server);
            let events = api.events(&home);
            let written =
                fs::read_to_string(home.project().join("a.txt")).expect("the file that was written");
            assert!(written == content, "{}: {} bytes", api.name, written.len());
            let told = answers(&events);
            assert_eq!(told[0]["stopReason"], "toolUse", "{}", api.name);
            assert_eq!(told[0]["content"][0]["arguments"]["path"], "a.txt", "{}", api.name);
            assert_eq!(text(told[1]), "Here I am.", "{}", api.name);
            let sum: String = events
                .iter()
                .filter_map(|event| event["assistantMessageEvent"].as_object())
                .filter(|event| event["type"] == "toolcall_delta")
                .filter_map(|event| event["delta"].as_str())
                .collect();
            assert_eq!(
                serde_json::from_str::<Value>(&sum).ok(),
                Some(told[0]["content"][0]["arguments"].clone()),
                "{}",
                api.name
            );
            assert_eq!(server.requests().len(), 2, "{}", api.name);
        }
    }
}
