//! What goes wrong between the daemon and a provider, over each API, as a user of `agentctl prompt` sees it; how long connections
//! are kept.

use std::fs;

use agentd_e2e::{
    Home, MockServer, Reply, Service, SocketClient,
    ctl::{self, Finished},
    wires::Wire,
};
use serde_json::{Value, json};

use crate::support::{answers, assert_says, kinds, text};

/// The key of every model here.
const KEY: &str = "test-key-1234";

/// A prompt to a model behind `wire` whose server gives these replies; how it ended, and how many requests there were.
struct Asked {
    done: Finished,
    requests: usize,
}

impl Asked {
    /// The model answered after `requests` requests.
    fn answered(&self, wire: Wire, requests: usize) {
        assert_eq!(
            (self.done.code, self.done.stdout.as_str()),
            (0, "Here I am.\n"),
            "{wire:?}: {:?}",
            self.done
        );
        assert_eq!(self.requests, requests, "{wire:?}: {:?}", self.done);
    }

    /// There was no answer after `requests` requests; the last line of stderr says why.
    fn failed(&self, wire: Wire, requests: usize, parts: &[&str]) {
        assert_eq!((self.done.code, self.done.stdout.as_str()), (1, ""), "{wire:?}: {:?}", self.done);
        assert_eq!(self.requests, requests, "{wire:?}: {:?}", self.done);
        let last = self.done.stderr.lines().last().expect("something on stderr");
        assert!(last.starts_with("Error: "), "{wire:?}: {:?}", self.done);
        assert_says(last, parts);
    }

    fn retries(&self) -> usize {
        self.done.stderr.matches("Asking again in").count()
    }
}

fn ask_with(args: &[&str], wire: Wire, retry: &Value, replies: impl IntoIterator<Item = Reply>) -> Asked {
    let server = MockServer::start(replies);
    let home = Home::new();
    home.configure(&json!({"providers": {wire.model(): wire.provider(&server)}}));
    // Recovery from a context that is too long is another matter.
    home.settings(&json!({"retry": retry, "compaction": {"enabled": false}}));
    let done = ctl::run(&home, args);
    let requests = server.requests();
    let sent = requests.first().expect("at least one request");
    assert!(sent.headers.iter().any(|(_, value)| value.contains(KEY)), "the server gets the key: {sent:?}");
    for request in &requests {
        assert_eq!(
            (request.target.as_str(), &request.body),
            (wire.target(), &sent.body),
            "each attempt is the same"
        );
    }
    // Neither shown nor stored.
    let sessions =
        home.session_files().into_iter().map(|file| fs::read_to_string(file).expect("a session file"));
    for text in sessions.chain([done.stdout.clone(), done.stderr.clone()]) {
        assert!(!text.contains(KEY), "{text}");
    }
    Asked { done, requests: requests.len() }
}

fn ask(wire: Wire, retry: &Value, replies: impl IntoIterator<Item = Reply>) -> Asked {
    ask_with(&["prompt", "Hello?"], wire, retry, replies)
}

/// Two retries that come at once.
fn quick() -> Value {
    json!({"baseDelayMs": 1, "maxRetries": 2})
}

/// No retries that a user would see, and two below them.
fn hidden() -> Value {
    json!({"enabled": false, "provider": {"maxRetries": 2}})
}

fn refusal(status: u16, body: impl AsRef<[u8]>) -> Reply {
    Reply::status(status, "application/json", body)
}

fn here(wire: Wire) -> Reply {
    Reply::stream(wire.answer("Here I am."))
}

#[test]
fn a_rate_limit_is_waited_for() {
    for wire in Wire::ALL {
        let busy = || {
            let body = wire.error("rate_limit_error", "Rate limit reached");
            refusal(429, body).header("Retry-After", "0.02")
        };
        let asked = ask(wire, &quick(), [busy(), here(wire)]);
        asked.answered(wire, 2);
        let parts = ["429: ", "Rate limit reached", "Asking again in 0.02 s (retry 1 of 2)"];
        assert_says(&asked.done.stderr, &parts);

        let asked = ask(wire, &hidden(), [busy(), busy(), here(wire)]);
        asked.answered(wire, 3);
        assert_eq!(asked.done.stderr, "");

        let asked = ask(wire, &hidden(), [busy(), busy(), busy(), here(wire)]);
        asked.failed(wire, 3, &["429: ", "Rate limit reached"]);

        let patience =
            refusal(429, wire.error("rate_limit_error", "Slow down")).header("Retry-After", "3600");
        ask(wire, &quick(), [patience]).failed(wire, 1, &["Server requested 3600s retry delay", "Slow down"]);
    }
}

#[test]
fn an_overloaded_provider_is_asked_again() {
    for wire in Wire::ALL {
        let overloaded = || refusal(529, wire.error("overloaded_error", "Overloaded"));
        let asked = ask(wire, &quick(), [overloaded(), overloaded(), here(wire)]);
        asked.answered(wire, 3);
        assert_eq!(asked.retries(), 2, "{:?}", asked.done);
        assert_says(&asked.done.stderr, &["529: ", "overloaded_error", "(retry 1 of 2)", "(retry 2 of 2)"]);

        let asked = ask(wire, &quick(), [overloaded(), overloaded(), overloaded(), here(wire)]);
        asked.failed(wire, 3, &["529: ", "Overloaded"]);
    }
}

#[test]
fn what_does_not_pass_is_asked_once() {
    for wire in Wire::ALL {
        let too_long = match wire {
            Wire::Chat => {
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."
            }
            Wire::Messages => "prompt is too long: 213462 tokens > 200000 maximum",
            Wire::Responses => {
                "Your input exceeds the context window of this model. Please adjust your input and try again."
            }
        };
        let lasting = [
            (401, "authentication_error", format!("Invalid API key: {KEY}"), "Invalid API key: [redacted]"),
            (
                403,
                "permission_error",
                format!("The key {KEY} may not use this model"),
                "The key [redacted] may",
            ),
            (429, "insufficient_quota", "You exceeded your current quota, check your plan.".into(), "quota"),
            (
                429,
                "rate_limit_error",
                "Your credit balance is too low. Go to Plans & Billing.".into(),
                "Billing",
            ),
            (400, "invalid_request_error", too_long.to_owned(), &too_long[..30]),
            (404, "not_found_error", "model: nonesuch".into(), "nonesuch"),
        ];
        for (status, kind, message, shown) in lasting {
            for retry in [quick(), hidden()] {
                let asked = ask(wire, &retry, [refusal(status, wire.error(kind, &message)), here(wire)]);
                asked.failed(wire, 1, &[&format!("{status}: "), kind, shown]);
                assert_eq!(asked.retries(), 0, "{:?}", asked.done);
            }
        }
    }
}

#[test]
fn web_pages_are_no_answers() {
    let page = "<!DOCTYPE html>\n<html><body><h1>502 Bad Gateway</h1></body></html>\n";
    for wire in Wire::ALL {
        let gateway = || Reply::status(502, "text/html", page);
        let asked = ask(wire, &quick(), [gateway(), here(wire)]);
        asked.answered(wire, 2);
        assert_says(&asked.done.stderr, &["502: <!DOCTYPE html>", "(retry 1 of 2)"]);
        let asked = ask(wire, &quick(), [gateway(), gateway(), gateway()]);
        assert_eq!((asked.done.code, asked.requests), (1, 3), "{:?}", asked.done);
        assert_says(&asked.done.stderr, &["Error: 502: <!DOCTYPE html>", "Bad Gateway"]);

        // A page where the API should be is the wrong address, whatever it claims to be.
        for kind in ["text/html", "text/event-stream"] {
            let asked = ask(wire, &quick(), [Reply::status(200, kind, page), here(wire)]);
            let hint = format!("Check the baseUrl of provider \"{}\"", wire.model());
            asked.failed(wire, 1, &["answered with a web page", "http://127.0.0.1:", &hint]);
        }
    }
}

#[test]
fn a_server_may_hang_up() {
    for wire in Wire::ALL {
        for retry in [quick(), json!({"enabled": false, "provider": {"maxRetries": 1}})] {
            ask(wire, &retry, [Reply::hang_up(), here(wire)]).answered(wire, 2);
        }
        let asked = ask(wire, &quick(), [Reply::hang_up(), Reply::hang_up(), Reply::hang_up()]);
        asked.failed(wire, 3, &["Connection lost before 127.0.0.1:"]);
        assert_eq!(asked.retries(), 2, "{:?}", asked.done);
    }
}

#[test]
fn a_silent_server_is_given_up() {
    for wire in Wire::ALL {
        let retry = json!({"baseDelayMs": 1, "maxRetries": 1, "provider": {"timeoutMs": 150}});
        let asked = ask(wire, &retry, [Reply::silence(), here(wire)]);
        asked.answered(wire, 2);
        assert_says(&asked.done.stderr, &["The request timed out", "(retry 1 of 1)"]);
        let asked = ask(wire, &retry, [Reply::silence(), Reply::silence()]);
        let limit = "began no answer within 0.15 s. The limit is the setting retry.provider.timeoutMs (150).";
        asked.failed(wire, 2, &["The request timed out: 127.0.0.1:", limit]);
    }
}

#[test]
fn an_answer_that_breaks_off_is_never_sent_again_unseen() {
    for wire in Wire::ALL {
        let half = || Reply::stream(wire.begun("Half of")).cut();
        let asked = ask(wire, &hidden(), [half(), here(wire)]);
        assert_eq!((asked.done.code, asked.requests), (1, 1), "{:?}", asked.done);
        assert_eq!(asked.done.stdout, "Half of\n");
        assert_says(
            &asked.done.stderr,
            &["Error: Connection lost in the middle of the answer of 127.0.0.1:"],
        );

        // The session's own retry: in the events, as an answer of its own.
        let asked = ask_with(&["prompt", "--json", "Hello?"], wire, &quick(), [half(), here(wire)]);
        assert_eq!((asked.done.code, asked.requests), (0, 2), "{:?}", asked.done);
        let events =
            asked.done.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
        let events: Vec<Value> = events.collect();
        let answers = answers(&events);
        assert_eq!(
            (text(answers[0]).as_str(), text(answers[1]).as_str()),
            ("Half of", "Here I am."),
            "{wire:?}"
        );
        assert_eq!((&answers[0]["stopReason"], &answers[1]["stopReason"]), (&json!("error"), &json!("stop")));
        let retry = events.iter().find(|event| event["type"] == "auto_retry_start").expect("a retry");
        assert_eq!(retry["errorMessage"], answers[0]["errorMessage"]);
        let order = ["agent_end", "auto_retry_start", "entry_appended", "agent_start"];
        assert!(kinds(&events).windows(4).any(|kinds| kinds == order), "{:?}", kinds(&events));
        let end =
            events.iter().find(|event| event["type"] == "auto_retry_end").expect("the end of the retry");
        assert_eq!((&end["success"], &end["attempt"]), (&json!(true), &json!(1)));
    }
}

#[test]
fn an_error_inside_of_an_answer_is_told() {
    for wire in Wire::ALL {
        let error = wire.error("overloaded_error", &format!("Overloaded ({KEY})"));
        let broken = || {
            let event = match wire {
                Wire::Messages => format!("event: error\ndata: {error}\n\n"),
                Wire::Chat => format!("data: {error}\n\n"),
                Wire::Responses => format!("event: error\ndata: {{\"type\":\"error\",{}\n\n", &error[1..]),
            };
            Reply::stream(wire.begun("Half of") + &event)
        };
        let asked = ask(wire, &quick(), [broken(), here(wire)]);
        assert_eq!((asked.done.code, asked.requests), (0, 2), "{wire:?}: {:?}", asked.done);
        assert!(asked.done.stdout.ends_with("Here I am.\n"), "{:?}", asked.done);
        assert_says(&asked.done.stderr, &["Overloaded ([redacted])", "(retry 1 of 2)"]);
        let asked = ask(wire, &hidden(), [broken(), here(wire)]);
        assert_eq!((asked.done.code, asked.requests), (1, 1), "{wire:?}: {:?}", asked.done);
        assert_says(&asked.done.stderr, &["Error: ", "Overloaded ([redacted])"]);
    }
}

fn client(service: &Service) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client
}

fn open(client: &mut SocketClient, home: &Home, model: &str) -> Value {
    let args = ["--model", model];
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "args": args}));
    opened["sessionId"].clone()
}

fn ask_once(client: &mut SocketClient) {
    client.done(json!({"type": "prompt", "message": "Hi"}));
    assert_eq!(text(answers(&client.settled())[0]), "Hello.");
}

#[test]
fn they_are_closed_with_the_last_session_that_uses_them() {
    let server = |wire: Wire| MockServer::always(Reply::stream(wire.answer("Hello.")));
    let (chat, messages) = (server(Wire::Chat), server(Wire::Messages));
    let home = Home::new();
    home.configure(&json!({"providers": {"chat": Wire::Chat.provider(&chat), "messages": Wire::Messages.provider(&messages)}}));
    let service = Service::start(&home, &[]);
    let (mut one, mut two, mut three) = (client(&service), client(&service), client(&service));
    let first = open(&mut one, &home, "chat/chat");
    let second = open(&mut two, &home, "chat/chat");
    let third = open(&mut three, &home, "messages/messages");
    [&mut one, &mut two, &mut three].into_iter().for_each(ask_once);
    // Both sessions go by the same one, or by another where that is not free yet.
    chat.wait_for_a_connection();
    messages.wait_for_a_connection();

    one.done(json!({"type": "close_session", "sessionId": first}));
    ask_once(&mut two);
    chat.wait_for_a_connection();
    two.done(json!({"type": "close_session", "sessionId": second}));
    chat.wait_for_no_connection();
    // What another session uses stays, whoever else has left.
    ask_once(&mut three);
    messages.wait_for_a_connection();
    assert_eq!((chat.requests().len(), messages.requests().len()), (3, 2));
    three.done(json!({"type": "close_session", "sessionId": third}));
    messages.wait_for_no_connection();

    // Who comes later gets new ones.
    open(&mut one, &home, "chat/chat");
    ask_once(&mut one);
    chat.wait_for_a_connection();
}
