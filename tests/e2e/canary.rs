//! No run writes or prints a secret outside of the place that it was stored in, whatever goes wrong.

use std::{fs, io::ErrorKind, path::Path, process::Stdio};

use agentd_e2e::{
    Ctl, Daemon, Home, MockServer, Reply, Service,
    apis::{Block, ProviderApi},
    ctl,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Every secret of these tests contains this text, and nothing else does.
pub(crate) const MARK: &str = "canary7f3a";

pub(crate) fn secret(purpose: &str) -> String {
    format!("{MARK}-{purpose}-0123456789")
}

/// All output and files, each with a name.
#[derive(Default)]
pub(crate) struct Seen(Vec<(String, Vec<u8>)>);

impl Seen {
    pub(crate) fn add(&mut self, what: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.push((what.into(), bytes.into()));
    }

    /// Adds every file below a folder, except those that users put secrets into.
    pub(crate) fn files(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.files(&path);
            } else if !path.ends_with("agent/models.json") && !path.ends_with("agent/auth.json") {
                match fs::read(&path) {
                    Ok(bytes) => self.add(path.display().to_string(), bytes),
                    // An intent log is removed some time after its run has settled.
                    Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{}", path.display()),
                }
            }
        }
    }

    /// # Panics
    /// When a secret occurs, as it is or in Base64 at any of the three offsets.
    pub(crate) fn assert_clean(&self) {
        let mut needles = vec![MARK.as_bytes().to_vec()];
        for offset in 0..3 {
            let padded = [&b"xxx"[..offset], MARK.as_bytes()].concat();
            let encoded = STANDARD.encode(padded);
            // The first and last characters depend on the neighbouring bytes.
            needles.push(encoded.as_bytes()[4..encoded.len() - 4].to_vec());
        }
        for (what, bytes) in &self.0 {
            for needle in &needles {
                let found = bytes.windows(needle.len()).position(|window| window == needle);
                if let Some(at) = found {
                    let around = &bytes[at.saturating_sub(200)..(at + 80).min(bytes.len())];
                    panic!("a secret is in {what}: ...{}...", String::from_utf8_lossy(around));
                }
            }
        }
    }
}

/// One provider for each API, each with a key from another source.
fn home(server: &MockServer) -> Home {
    let home = Home::new();
    let mut chat = ProviderApi::Chat.provider(server);
    chat["apiKey"] = json!("$CANARY_KEY");
    chat["headers"] =
        json!({"X-Canary": secret("header"), "X-Command": format!("!echo {}", secret("command"))});
    let mut messages = ProviderApi::Messages.provider(server);
    messages["apiKey"] = json!(format!("!printf %s {}", secret("key-command")));
    let mut responses = ProviderApi::Responses.provider(server);
    responses["apiKey"] = json!(secret("models-json"));
    let refused = json!({"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions",
        "apiKey": secret("refused"), "models": [{"id": "m"}]});
    let in_address = json!({"baseUrl": format!("{}?token={}", server.base_url().replace("//", &format!("//u:{}@", secret("userinfo"))), secret("query")),
        "api": "openai-completions", "apiKey": "k-of-no-worth", "models": [{"id": "m"}]});
    home.configure(&json!({"providers": {"chat": chat, "messages": messages, "responses": responses,
        "refused": refused, "address": in_address}}));
    home.write_agent(
        "auth.json",
        &json!({"responses": {"type": "api_key", "key": secret("stored")}}).to_string(),
    );
    home.settings(&json!({"retry": {"enabled": false}}));
    home
}

/// The purposes of the secrets in a request to a provider of [`home`].
fn sent_to(provider: &str) -> &'static [&'static str] {
    match provider {
        "chat" => &["variable", "header", "command"],
        "messages" => &["key-command"],
        "responses" => &["stored"],
        "address" => &["userinfo", "query"],
        other => panic!("no provider {other}"),
    }
}

/// Answers that repeat what was sent, in each field where servers put texts.
fn telltales(api: ProviderApi, sent: &[&str]) -> Vec<Reply> {
    let all: Vec<String> = sent.iter().map(|purpose| secret(purpose)).collect();
    let tell = format!("Incorrect API key provided: {}", all.join(" Bearer "));
    let body = json!({"error": {"message": tell, "type": "invalid_request_error", "code": tell}}).to_string();
    let page = format!("<html><title>{tell}</title>{tell}</html>");
    let in_stream = match api {
        ProviderApi::Chat => format!("data: {}\n\n", json!({"error": {"message": tell, "code": 500}})),
        ProviderApi::Messages => format!(
            "event: error\ndata: {}\n\n",
            json!({"type": "error", "error": {"type": "api_error", "message": tell}})
        ),
        ProviderApi::Responses => format!(
            "event: error\ndata: {}\n\n",
            json!({"type": "error", "code": "x", "message": tell, "param": null})
        ),
    };
    vec![
        Reply::stream(
            api.stream(&[
                Block::Text("Calling."),
                Block::Call("c1", "bash", json!({"command": "echo done"})),
            ]),
        ),
        Reply::stream(api.answer("Fine.")),
        Reply::status(401, "application/json", &body),
        Reply::status(403, "application/json", &body).header("x-request-id", &tell),
        Reply::status(429, "application/json", &body).header("retry-after", &tell),
        Reply::status(500, "text/html", &page),
        Reply::status(200, "text/html", &page),
        Reply::status(301, "text/html", "").header("location", &format!("http://127.0.0.1:9/{}", all[0])),
        Reply::stream(in_stream),
        Reply::stream(format!("data: {{\"{tell}\n\n")),
        Reply::stream(&api.answer("Cut")[..60]).cut(),
    ]
}

/// Runs each of the telltales through one session.
fn talk(home: &Home, server: &MockServer, api: ProviderApi, args: &[&str], seen: &mut Seen) {
    let model = format!("{0}/{0}", api.model());
    let args = [&["--model", &model][..], args].concat();
    let mut daemon = Daemon::start_with(home, &args, |command| {
        command.env("AGENTD_LOG", "trace").env("CANARY_KEY", secret("variable"));
    });
    // A key of the command line replaces the configured one.
    let with_flag: &[&str] =
        if api == ProviderApi::Chat { &["flag", "header", "command"] } else { &["flag"] };
    let sent = if args.contains(&"--api-key") { with_flag } else { sent_to(api.model()) };
    let replies = telltales(api, sent);
    // The first two replies belong to one run.
    let runs = replies.len() - 1;
    replies.into_iter().for_each(|reply| server.push(reply));
    for run in 0..runs {
        for event in daemon.prompt(&format!("Prompt {run}")) {
            seen.add(format!("an event of {api:?}"), event.to_string());
        }
    }
    for command in [
        "get_messages",
        "get_entries",
        "get_state",
        "get_session_stats",
        "get_auth_status",
        "diagnose",
        "list_models",
    ] {
        seen.add(command, daemon.call(json!({"type": command})).to_string());
    }
    daemon.send_bytes(
        format!("{{\"type\":\"login\",\"provider\":\"x\",\"key\":[\"{0}\"],\"{0}\n", secret("line"))
            .as_bytes(),
    );
    for bad in [
        json!({"type": "login", "provider": "openai", "key": [secret("list")]}),
        json!({"type": "login", "provider": "openai", "key": format!("{} x", secret("blank"))}),
        json!({"type": "login", "provider": "openai", "key": secret("login")}),
    ] {
        seen.add("the answer to login", daemon.call(bad).to_string());
    }
    let ended = daemon.close();
    ended.rest.iter().for_each(|line| seen.add("the last lines", line.to_string()));
    assert!(
        ended.stderr.contains("TRACE") || ended.stderr.contains("DEBUG"),
        "nothing was logged: {}",
        ended.stderr
    );
    seen.add(format!("the log of {api:?}"), ended.stderr);
}

#[test]
fn no_secret_in_any_event_log_error_or_file() {
    let mut seen = Seen::default();
    for api in ProviderApi::ALL {
        let server = MockServer::start([]);
        let home = home(&server);
        let folder = home.root().join("recordings");
        talk(&home, &server, api, &["--record", folder.to_str().unwrap()], &mut seen);
        assert!(fs::read_dir(&folder).unwrap().count() > 10, "little was recorded: the test proves little");
        let sent = server.requests();
        let arrived = |purpose: &str| {
            sent.iter()
                .any(|request| request.headers.iter().any(|(_, value)| value.contains(&secret(purpose))))
        };
        for purpose in sent_to(api.model()) {
            assert!(arrived(purpose), "{purpose} was never sent: the test proves nothing");
        }
        talk(&home, &server, api, &["--api-key", &secret("flag")], &mut seen);
        assert!(home.session_files().len() >= 2);
        seen.files(home.root());
    }
    assert!(seen.0.iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("[redacted]")));
    seen.assert_clean();
}

#[test]
fn no_secret_in_what_agentctl_says() {
    let mut seen = Seen::default();
    let server = MockServer::start([]);
    let home = home(&server);
    let run = |args: &[&str], input: &str| {
        let mut command = ctl::command(&home, args);
        command
            .env("AGENTD_LOG", "trace")
            .env("CANARY_KEY", secret("variable"))
            .env("OPENAI_API_KEY", secret("environment"));
        let stdin = home.root().join("stdin");
        fs::write(&stdin, input).unwrap();
        let done = Ctl::start_with(command, Stdio::from(fs::File::open(&stdin).unwrap())).finish();
        fs::remove_file(stdin).unwrap();
        done
    };
    let mut check = |args: &[&str], input: &str, code: i32| {
        let done = run(args, input);
        assert_eq!(done.code, code, "{args:?} {done:?}");
        seen.add(format!("stdout of {args:?}"), done.stdout);
        seen.add(format!("stderr of {args:?}"), done.stderr);
    };
    for model in ["refused/m", "address/m", "chat/chat", "messages/messages", "responses/responses"] {
        for more in [&[][..], &["--json"]] {
            if model != "refused/m" {
                let api = ProviderApi::ALL.into_iter().find(|api| model.starts_with(api.model()));
                let provider = model.split('/').next().unwrap();
                server.push(telltales(api.unwrap_or(ProviderApi::Chat), sent_to(provider)).swap_remove(2));
            }
            check(&[&["prompt", "--model", model, "Hi"], more].concat(), "", 1);
        }
    }
    check(&["login", "anthropic"], &secret("login"), 0);
    check(&["login", "nobody"], &secret("login"), 1);
    check(&["login", "openai", &secret("argument")], "", 2);
    check(&["login", "openai", "--env", &secret("env")], "k", 2);
    let with_line_break = format!("A={}\n", secret("env"));
    check(&["login", "openai", "--env", &with_line_break], "k", 1);
    check(&["auth", "status"], "", 0);
    check(&["auth", "status", "--json"], "", 0);
    check(&["models", "--all", "--json"], "", 0);
    check(&["models", "chat"], "", 0);
    check(&["doctor"], "", 0);
    check(&["logout", "anthropic"], "", 0);
    // The file breaks off in the middle of a secret.
    home.write_agent("auth.json", &format!("{{\"x\": {}", secret("broken")));
    home.write_agent("settings.json", &format!("{{\"x\": {}", secret("broken")));
    check(&["login", "openai"], &secret("login"), 1);
    check(&["doctor"], "", 1);
    check(&["prompt", "--model", "responses/responses", "Hi"], "", 1);
    home.write_agent("models.json", &format!("{{\"x\": {}", secret("broken")));
    check(&["doctor", "--json"], "", 1);
    check(&["models"], "", 0);
    for name in ["auth.json", "settings.json", "models.json"] {
        fs::remove_file(home.agent_dir().join(name)).unwrap();
    }
    seen.files(home.root());
    seen.assert_clean();
}

/// A report is for others: it holds no secret that the user put into a conversation, a log or a settings file by mistake.
#[test]
fn no_secret_in_a_bug_report() {
    let server = MockServer::start([]);
    let home = home(&server);
    home.settings(&json!({"retry": {"enabled": false}, "httpProxy": format!("http://me:{}@127.0.0.1:9", secret("proxy")),
        "x": {"someToken": secret("setting")}}));
    home.write(".agentd/settings.json", &json!({"y": {"password": secret("project")}}).to_string());
    let mut seen = Seen::default();
    let known = [
        "variable",
        "header",
        "models-json",
        "stored",
        "userinfo",
        "query",
        "proxy",
        "setting",
        "project",
        "refused",
        "environment",
    ];
    let all = known.map(secret).join(" \"quoted\" ");
    server.push(Reply::stream(ProviderApi::Chat.answer("Fine.")));
    let folder = home.root().join("recordings");
    let args = ["--model", "chat/chat", "--record", folder.to_str().unwrap()];
    let mut daemon = Daemon::start_with(&home, &args, |command| {
        command.env("CANARY_KEY", secret("variable")).env("OTHER_API_KEY", secret("environment"));
    });
    daemon.prompt(&format!("My keys: {all}"));
    let id = daemon.call(json!({"type": "get_state"}))["data"]["sessionId"].as_str().unwrap().to_owned();
    daemon.close();
    home.write_agent("logs/agentd.log", &format!("said {all}\n"));
    let report = home.root().join("report.jsonl");
    let args = ["bug-report", &id, "-o", report.to_str().unwrap(), "--recordings", folder.to_str().unwrap()];
    let mut command = ctl::command(&home, &args);
    command.env("CANARY_KEY", secret("variable")).env("OTHER_API_KEY", secret("environment"));
    let done = Ctl::start_with(command, Stdio::null()).finish();
    assert_eq!(done.code, 0, "{done:?}");
    let text = fs::read_to_string(&report).unwrap();
    for kind in ["settings", "entry", "recording", "log"] {
        let line = format!("{{\"type\":\"{kind}\",");
        assert!(text.lines().any(|it| it.starts_with(&line) && it.contains("[redacted]")), "{kind}: {text}");
    }
    text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).expect(line)));
    seen.add("the report", text);
    seen.add("what is said of it", format!("{}{}", done.stdout, done.stderr));
    seen.assert_clean();
}

/// The bridge sends its arguments and its whole environment through the socket, and nowhere else.
#[test]
fn no_secret_on_the_way_to_the_daemon() {
    let mut seen = Seen::default();
    let server = MockServer::start([]);
    let home = home(&server);
    let service = Service::start_with(&home, &[], |command| {
        command.env("AGENTD_LOG", "trace");
    });
    let bridge = |args: &[&str]| {
        Daemon::start_with(&home, &[&["--shared"], args].concat(), |command| {
            command.env("AGENTD_LOG", "trace").env("CANARY_KEY", secret("variable"));
        })
    };
    for (key, key_of) in [(&[][..], "variable"), (&["--api-key", &secret("flag")], "flag")] {
        let mut daemon = bridge(&[&["--model", "chat/chat"], key].concat());
        let replies = telltales(ProviderApi::Chat, &[key_of, "header", "command"]);
        let runs = replies.len() - 1;
        replies.into_iter().for_each(|reply| server.push(reply));
        for run in 0..runs {
            for event in daemon.prompt(&format!("Prompt {run}")) {
                seen.add("an event", event.to_string());
            }
        }
        for command in ["get_state", "list_sessions", "daemon_status", "get_auth_status"] {
            seen.add(command, daemon.call(json!({"type": command})).to_string());
        }
        seen.add("the bridge's stderr", daemon.close().stderr);
    }
    let sent = server.requests();
    for purpose in ["variable", "flag"] {
        let arrived = |(_, value): &(String, String)| value.contains(&secret(purpose));
        assert!(sent.iter().any(|request| request.headers.iter().any(arrived)), "{purpose} was never sent");
    }
    for refused in [&["--model", "nope", "--api-key"][..], &["--nope", "--api-key"]] {
        let ended = bridge(&[refused, &[&secret("refused-flag")]].concat()).wait();
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        seen.add("the stderr of a refusal", ended.stderr);
    }
    let mut command = ctl::command(&home, &["rpc", "--", "--model", "nope", "--api-key", &secret("ctl")]);
    command.env("CANARY_KEY", secret("variable"));
    seen.add("agentctl rpc", Ctl::start_with(command, Stdio::null()).finish().stderr);
    service.signal(Signal::TERM);
    let ended = service.wait();
    assert!(ended.stderr.contains("TRACE") || ended.stderr.contains("DEBUG"), "nothing was logged");
    seen.add("the daemon's log", ended.stderr);
    seen.files(home.root());
    seen.assert_clean();
}

/// Checks the search itself.
#[test]
fn the_search_finds_secrets() {
    let found = |bytes: Vec<u8>| {
        let seen = Seen(vec![("x".into(), bytes)]);
        std::panic::catch_unwind(|| seen.assert_clean()).is_err()
    };
    assert!(found(format!("a {} b", secret("x")).into()));
    for before in ["", "a", "ab", "abc"] {
        assert!(found(STANDARD.encode(format!("{before}{}", secret("x"))).into()), "{before}");
    }
    assert!(!found(Value::from("nothing here").to_string().into()));
}
