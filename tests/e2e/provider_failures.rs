//! Failures between the daemon and a provider over each API, as a user of `agentctl prompt` sees them; the life of
//! connections.

use std::fs;

use agentd_e2e::{
    Gate, Home, MockServer, Reply, Service, SocketClient,
    apis::ProviderApi,
    ctl::{self, Finished},
};
use serde_json::{Value, json};

use crate::support::{answers, assert_says, kinds, text};

const KEY: &str = "test-key-1234";

/// The end of a prompt, and its number of requests.
struct Asked {
    done: Finished,
    requests: usize,
}

impl Asked {
    /// Asserts that the model answered after `requests` requests.
    fn answered(&self, api: ProviderApi, requests: usize) {
        assert_eq!(
            (self.done.code, self.done.stdout.as_str()),
            (0, "Here I am.\n"),
            "{api:?}: {:?}",
            self.done
        );
        assert_eq!(self.requests, requests, "{api:?}: {:?}", self.done);
    }

    /// Asserts that there was no answer after `requests` requests; the last error on stderr gives the reason.
    fn failed(&self, api: ProviderApi, requests: usize, parts: &[&str]) {
        assert_eq!((self.done.code, self.done.stdout.as_str()), (1, ""), "{api:?}: {:?}", self.done);
        assert_eq!(self.requests, requests, "{api:?}: {:?}", self.done);
        let last = self.done.stderr.lines().rfind(|line| line.starts_with("Error: "));
        let last = last.unwrap_or_else(|| panic!("{api:?}: {:?}", self.done));
        assert_says(last, parts);
    }

    fn retries(&self) -> usize {
        self.done.stderr.matches("Asking again in").count()
    }
}

fn ask_with(
    args: &[&str],
    api: ProviderApi,
    retry: &Value,
    replies: impl IntoIterator<Item = Reply>,
) -> Asked {
    let server = MockServer::start(replies);
    let home = Home::new();
    home.configure(&json!({"providers": {api.model(): api.provider(&server)}}));
    // The overflow retry is tested elsewhere.
    home.settings(&json!({"retry": retry, "compaction": {"enabled": false}}));
    let done = ctl::run(&home, args);
    let requests = server.requests();
    let sent = requests.first().expect("at least one request");
    assert!(sent.headers.iter().any(|(_, value)| value.contains(KEY)), "the server gets the key: {sent:?}");
    for request in &requests {
        assert_eq!(
            (request.target.as_str(), &request.body),
            (api.target(), &sent.body),
            "each attempt is the same"
        );
    }
    // The key is neither shown nor stored.
    let sessions =
        home.session_files().into_iter().map(|file| fs::read_to_string(file).expect("a session file"));
    for text in sessions.chain([done.stdout.clone(), done.stderr.clone()]) {
        assert!(!text.contains(KEY), "{text}");
    }
    Asked { done, requests: requests.len() }
}

fn ask(api: ProviderApi, retry: &Value, replies: impl IntoIterator<Item = Reply>) -> Asked {
    ask_with(&["prompt", "Hello?"], api, retry, replies)
}

/// Two retries without a pause.
fn quick() -> Value {
    json!({"baseDelayMs": 1, "maxRetries": 2})
}

/// No visible retries, and two hidden ones.
fn hidden() -> Value {
    json!({"enabled": false, "provider": {"maxRetries": 2}})
}

fn refusal(status: u16, body: impl AsRef<[u8]>) -> Reply {
    Reply::status(status, "application/json", body)
}

fn here(api: ProviderApi) -> Reply {
    Reply::stream(api.answer("Here I am."))
}

#[test]
fn a_rate_limit_is_waited_for() {
    for api in ProviderApi::ALL {
        let busy = || {
            let body = api.error("rate_limit_error", "Rate limit reached");
            refusal(429, body).header("Retry-After", "0.02")
        };
        let asked = ask(api, &quick(), [busy(), here(api)]);
        asked.answered(api, 2);
        let parts = ["429: ", "Rate limit reached", "Asking again in 0.02 s (retry 1 of 2)"];
        assert_says(&asked.done.stderr, &parts);

        let asked = ask(api, &hidden(), [busy(), busy(), here(api)]);
        asked.answered(api, 3);
        assert_eq!(asked.done.stderr, "");

        let asked = ask(api, &hidden(), [busy(), busy(), busy(), here(api)]);
        asked.failed(api, 3, &["429: ", "Rate limit reached"]);

        let long_pause =
            refusal(429, api.error("rate_limit_error", "Slow down")).header("Retry-After", "3600");
        ask(api, &quick(), [long_pause]).failed(api, 1, &["Server requested 3600s retry delay", "Slow down"]);
    }
}

#[test]
fn an_overloaded_provider_is_asked_again() {
    for api in ProviderApi::ALL {
        let overloaded = || refusal(529, api.error("overloaded_error", "Overloaded"));
        let asked = ask(api, &quick(), [overloaded(), overloaded(), here(api)]);
        asked.answered(api, 3);
        assert_eq!(asked.retries(), 2, "{:?}", asked.done);
        assert_says(&asked.done.stderr, &["529: ", "overloaded_error", "(retry 1 of 2)", "(retry 2 of 2)"]);

        let asked = ask(api, &quick(), [overloaded(), overloaded(), overloaded(), here(api)]);
        asked.failed(api, 3, &["529: ", "Overloaded"]);
    }
}

#[test]
fn a_permanent_failure_is_asked_once() {
    for api in ProviderApi::ALL {
        let too_long = match api {
            ProviderApi::Chat => {
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."
            }
            ProviderApi::Messages => "prompt is too long: 213462 tokens > 200000 maximum",
            ProviderApi::Responses => {
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
                let asked = ask(api, &retry, [refusal(status, api.error(kind, &message)), here(api)]);
                asked.failed(api, 1, &[&format!("{status}: "), kind, shown]);
                assert_eq!(asked.retries(), 0, "{:?}", asked.done);
            }
        }
    }
}

#[test]
fn web_pages_are_no_answers() {
    let page = "<!DOCTYPE html>\n<html><body><h1>502 Bad Gateway</h1></body></html>\n";
    for api in ProviderApi::ALL {
        let gateway = || Reply::status(502, "text/html", page);
        let asked = ask(api, &quick(), [gateway(), here(api)]);
        asked.answered(api, 2);
        assert_says(&asked.done.stderr, &["502: <!DOCTYPE html>", "(retry 1 of 2)"]);
        let asked = ask(api, &quick(), [gateway(), gateway(), gateway()]);
        assert_eq!((asked.done.code, asked.requests), (1, 3), "{:?}", asked.done);
        assert_says(&asked.done.stderr, &["Error: 502: <!DOCTYPE html>", "Bad Gateway"]);

        // A web page means a wrong address, whatever its content type.
        for kind in ["text/html", "text/event-stream"] {
            let asked = ask(api, &quick(), [Reply::status(200, kind, page), here(api)]);
            let hint = format!("Check the baseUrl of provider \"{}\"", api.model());
            asked.failed(api, 1, &["answered with a web page", "http://127.0.0.1:", &hint]);
        }
    }
}

#[test]
fn a_server_may_hang_up() {
    for api in ProviderApi::ALL {
        for retry in [quick(), json!({"enabled": false, "provider": {"maxRetries": 1}})] {
            ask(api, &retry, [Reply::hang_up(), here(api)]).answered(api, 2);
        }
        let asked = ask(api, &quick(), [Reply::hang_up(), Reply::hang_up(), Reply::hang_up()]);
        asked.failed(api, 3, &["Connection lost before 127.0.0.1:"]);
        assert_eq!(asked.retries(), 2, "{:?}", asked.done);
    }
}

#[test]
fn a_silent_server_is_given_up() {
    for api in ProviderApi::ALL {
        let retry =
            |timeout: u32| json!({"baseDelayMs": 1, "maxRetries": 1, "provider": {"timeoutMs": timeout}});
        // The second reply has to arrive within the timeout, on a loaded machine, too.
        let asked = ask(api, &retry(1_500), [Reply::silence(), here(api)]);
        asked.answered(api, 2);
        assert_says(&asked.done.stderr, &["The request timed out", "(retry 1 of 1)"]);
        let asked = ask(api, &retry(150), [Reply::silence(), Reply::silence()]);
        let limit = "began no answer within 0.15 s. The limit is the setting retry.provider.timeoutMs (150).";
        asked.failed(api, 2, &["The request timed out: 127.0.0.1:", limit]);
    }
}

#[test]
fn an_answer_that_breaks_off_is_never_sent_again_unseen() {
    for api in ProviderApi::ALL {
        let half = || Reply::stream(api.begun("Half of")).cut();
        let asked = ask(api, &hidden(), [half(), here(api)]);
        assert_eq!((asked.done.code, asked.requests), (1, 1), "{:?}", asked.done);
        assert_eq!(asked.done.stdout, "");
        assert_says(
            &asked.done.stderr,
            &["Error: Connection lost in the middle of the answer of 127.0.0.1:"],
        );

        // The session's own retry is visible in the events as a separate answer.
        let asked = ask_with(&["prompt", "--json", "Hello?"], api, &quick(), [half(), here(api)]);
        assert_eq!((asked.done.code, asked.requests), (0, 2), "{:?}", asked.done);
        let events =
            asked.done.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
        let events: Vec<Value> = events.collect();
        let answers = answers(&events);
        assert_eq!(
            (text(answers[0]).as_str(), text(answers[1]).as_str()),
            ("Half of", "Here I am."),
            "{api:?}"
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
fn an_error_inside_of_an_answer_is_reported() {
    for api in ProviderApi::ALL {
        let error = api.error("overloaded_error", &format!("Overloaded ({KEY})"));
        let broken = || {
            let event = match api {
                ProviderApi::Messages => format!("event: error\ndata: {error}\n\n"),
                ProviderApi::Chat => format!("data: {error}\n\n"),
                ProviderApi::Responses => {
                    format!("event: error\ndata: {{\"type\":\"error\",{}\n\n", &error[1..])
                }
            };
            Reply::stream(api.begun("Half of") + &event)
        };
        let asked = ask(api, &quick(), [broken(), here(api)]);
        assert_eq!((asked.done.code, asked.requests), (0, 2), "{api:?}: {:?}", asked.done);
        assert!(asked.done.stdout.ends_with("Here I am.\n"), "{:?}", asked.done);
        assert_says(&asked.done.stderr, &["Overloaded ([redacted])", "(retry 1 of 2)"]);
        let asked = ask(api, &hidden(), [broken(), here(api)]);
        assert_eq!((asked.done.code, asked.requests), (1, 1), "{api:?}: {:?}", asked.done);
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
fn a_connection_serves_again_when_the_end_of_the_body_comes_after_the_answer() {
    let api = ProviderApi::Messages;
    let body_end = Gate::default();
    let server = MockServer::always(Reply::stream(api.answer("Hello.")).gate(&body_end));
    let home = Home::new();
    home.configure(&json!({"providers": {"messages": api.provider(&server)}}));
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    open(&mut client, &home, "messages/messages");
    ask_once(&mut client);
    body_end.open();
    // The second request may come before the end of the first body, by a connection of its own.
    ask_once(&mut client);
    let (open, accepted) = server.connections();
    assert_eq!(open, accepted, "no connection was closed");
}

#[test]
fn connections_are_closed_with_the_last_session_that_uses_them() {
    let server = |api: ProviderApi| MockServer::always(Reply::stream(api.answer("Hello.")));
    let (chat, messages) = (server(ProviderApi::Chat), server(ProviderApi::Messages));
    let home = Home::new();
    home.configure(&json!({"providers": {"chat": ProviderApi::Chat.provider(&chat), "messages": ProviderApi::Messages.provider(&messages)}}));
    let service = Service::start(&home, &[]);
    let (mut one, mut two, mut three) = (client(&service), client(&service), client(&service));
    let first = open(&mut one, &home, "chat/chat");
    let second = open(&mut two, &home, "chat/chat");
    let third = open(&mut three, &home, "messages/messages");
    [&mut one, &mut two, &mut three].into_iter().for_each(ask_once);
    // Both sessions use one connection, or a second one while the first is busy.
    chat.wait_for_a_connection();
    messages.wait_for_a_connection();

    one.done(json!({"type": "close_session", "sessionId": first}));
    ask_once(&mut two);
    chat.wait_for_a_connection();
    two.done(json!({"type": "close_session", "sessionId": second}));
    chat.wait_for_no_connection();
    // Connections of another session stay open.
    ask_once(&mut three);
    messages.wait_for_a_connection();
    assert_eq!((chat.requests().len(), messages.requests().len()), (3, 2));
    three.done(json!({"type": "close_session", "sessionId": third}));
    messages.wait_for_no_connection();

    // A later session opens a new connection.
    open(&mut one, &home, "chat/chat");
    ask_once(&mut one);
    chat.wait_for_a_connection();
}
