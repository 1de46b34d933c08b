//! Recordings replay as they were, and hold no secrets.

use std::{fs, path::Path, sync::Arc, time::Duration};

use agentd_http::{Credentials, HttpClients, Network, Secret};
use agentd_protocol::{Json, message::Message, model::Model};
use futures::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Delta, Provider, Request, http::HttpProvider, providers::openai_completions::OpenAiCompletions};

const KEY: &str = "sk-hush-0123456789";

/// A server that answers the nth request with the nth of these pieces, and closes.
async fn server(answers: Vec<Vec<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for pieces in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; 65536];
            let mut read = 0;
            while !String::from_utf8_lossy(&buffer[..read]).contains("\"stream\"") {
                read += stream.read(&mut buffer[read..]).await.unwrap();
            }
            for piece in pieces {
                stream.write_all(piece.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    base
}

fn head(status: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\nx-auth-echo: {KEY}\r\nConnection: close\r\n\r\n"
    )
}

fn text(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn request(base_url: &str, session: &str, prompt: &str) -> Request {
    let message: Json<Message> =
        serde_json::from_str(&format!(r#"{{"role":"user","content":"{prompt}"}}"#)).unwrap();
    let model = Model {
        base_url: base_url.into(),
        api: "openai-completions".into(),
        provider: "p".into(),
        id: "m".into(),
        ..Model::placeholder()
    };
    Request {
        session_id: session.into(),
        credentials: Credentials { api_key: Some(Secret::new(KEY)), ..Credentials::default() },
        idle_timeout: Some(Duration::from_secs(20)),
        ..Request::new(Arc::new(model), vec![message])
    }
}

async fn ask(mode: &ExchangeMode, request: Request) -> Vec<Delta> {
    let clients = HttpClients::new(Network::default());
    let transport = Transport { clients, exchange_mode: mode.clone(), ..Transport::default() };
    let provider = HttpProvider::new(Arc::new(transport), OpenAiCompletions);
    provider.stream(request, CancellationToken::new()).collect().await
}

fn recorder(folder: &Path) -> ExchangeMode {
    ExchangeMode::Recorded(Arc::new(Recorder::open(folder, |problem| panic!("{problem}")).unwrap()))
}

fn player(source: &Path, options: PlayerOptions) -> ExchangeMode {
    ExchangeMode::Replayed(Arc::new(Player::open(source, options).unwrap()))
}

fn failure(deltas: &[Delta]) -> String {
    match deltas.last() {
        Some(Delta::Failed { failure, .. }) => failure.message.clone(),
        other => panic!("{other:?}"),
    }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn what_was_recorded_is_played_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("new");
    let ok = head("200 OK");
    // The key comes back in the middle of two pieces, and a character of two bytes is cut in none of its halves.
    let (first, rest) = KEY.split_at(7);
    let half = text(&format!("got ü {first}"));
    let (before, after) = half.split_at(half.find(first).unwrap() + first.len());
    let answers = vec![
        vec![ok.clone(), text("one"), END.to_owned()],
        vec![ok.clone(), before.to_owned(), format!("{rest}{after}"), END.to_owned()],
        vec![ok.clone(), text("other"), END.to_owned()],
        vec![head("400 No"), format!(r#"{{"error":{{"message":"bad {KEY}"}}}}"#)],
        vec![ok, text("cut")],
    ];
    let base = server(answers).await;
    let mode = recorder(&folder);
    let prompts = [("a", "1"), ("a", "2"), ("b", "1b"), ("a", "3"), ("a", "4")];
    let mut live = Vec::new();
    for (session, prompt) in prompts {
        live.push(ask(&mode, request(&base, session, prompt)).await);
    }
    assert!(failure(&live[3]).contains("[redacted]"));
    assert_eq!(files(&folder).len(), prompts.len());
    for file in files(&folder) {
        use std::os::unix::fs::PermissionsExt;
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains(KEY) && !text.contains(rest), "{text}");
        assert!(text.starts_with("{\"type\":\"request\",\"version\":1,"), "{text}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // ReplayedAnswer back under other names, at another address, in another order of the sessions, without the server.
    for (session, prompt, before) in
        [("y", "1b", 2), ("x", "1", 0), ("x", "2", 1), ("x", "3", 3), ("x", "4", 4)]
    {
        let mode = if before == 2 {
            player(&folder, PlayerOptions::default())
        } else {
            recording_of(&folder, before)
        };
        let played = ask(&mode, request("http://127.0.0.1:1/v1", session, prompt)).await;
        let shown = format!("{:?}", live[before]).replace(KEY, "[redacted]");
        assert_eq!(folded(&played), folded(&live[before]), "{shown}");
    }
    // A second recording goes on behind the first.
    let base = server(vec![vec![head("200 OK"), END.to_owned()]]).await;
    ask(&recorder(&folder), request(&base, "c", "9")).await;
    assert!(files(&folder).last().unwrap().to_str().unwrap().contains("000006-"));
}

/// A player that has played what comes before the nth exchange of the first session.
fn recording_of(folder: &Path, before: usize) -> ExchangeMode {
    let rest = tempfile::tempdir().unwrap().keep();
    for (nth, file) in files(folder).into_iter().enumerate() {
        if nth >= before {
            fs::copy(&file, rest.join(file.file_name().unwrap())).unwrap();
        }
    }
    player(&rest, PlayerOptions::default())
}

/// Text and end of an answer, without the secret.
fn folded(deltas: &[Delta]) -> (String, String) {
    let text = deltas.iter().filter_map(|delta| match delta {
        Delta::Extend { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    (text.collect::<String>().replace(KEY, "[redacted]"), format!("{:?}", deltas.last()))
}

#[tokio::test]
async fn another_request_is_refused_with_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let base = server(vec![vec![head("200 OK"), text("one"), END.to_owned()]]).await;
    ask(&recorder(folder.path()), request(&base, "a", "hello there")).await;
    let mode = player(folder.path(), PlayerOptions::default());
    let differs = failure(&ask(&mode, request(&base, "x", "hello world")).await);
    for part in ["000001-openai-completions-p.jsonl", "hello there\"", "+       \"content\": \"hello world"] {
        assert!(differs.contains(part), "{differs}");
    }
    let elsewhere = failure(&ask(&mode, request(&format!("{base}/v2"), "x", "hello there")).await);
    assert!(elsewhere.contains("/v1/v2/chat/completions"), "{elsewhere}");
    // In order alone, the same request fits; and then there is none left.
    let options = PlayerOptions { matching: ReplayMatching::Order, timing: true };
    let mode = player(folder.path(), options);
    let played = ask(&mode, request(&base, "x", "hello world")).await;
    assert!(matches!(played.last(), Some(Delta::Done { .. })), "{played:?}");
    let over = failure(&ask(&mode, request(&base, "x", "more")).await);
    assert!(over.contains("no more requests"), "{over}");
}

#[tokio::test]
async fn an_answer_that_was_aborted_says_so_when_it_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let base = server(vec![vec![head("200 OK"), text("one"), text("two")]]).await;
    let transport = Transport {
        clients: HttpClients::new(Network::default()),
        exchange_mode: recorder(folder.path()),
        ..Transport::default()
    };
    let provider = HttpProvider::new(Arc::new(transport), OpenAiCompletions);
    let cancel = CancellationToken::new();
    let mut stream = provider.stream(request(&base, "a", "1"), cancel.clone());
    while !matches!(stream.next().await, Some(Delta::Extend { .. })) {}
    cancel.cancel();
    let _: Vec<Delta> = stream.collect().await;
    let played = ask(&player(folder.path(), PlayerOptions::default()), request(&base, "a", "1")).await;
    assert!(failure(&played).contains("aborted when it was recorded"), "{played:?}");
}

#[test]
fn what_is_no_recording_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, text: &str, expected: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let error = Player::open(&path, PlayerOptions::default()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(name), "{error}");
    };
    check("a.jsonl", "{\"type\":\"session\"}\n", "line 1 is no line of a recording");
    check("b.jsonl", "{\"type\":\"request\",\"version\":9}\n", "version 9");
    check("c.jsonl", "", "no recordings");
    let missing = Player::open(&folder.path().join("none"), PlayerOptions::default()).unwrap_err();
    assert!(missing.to_string().contains("none"), "{missing}");
    let file = folder.path().join("c.jsonl");
    let error = Recorder::open(&file, |_| {}).unwrap_err().to_string();
    assert!(error.contains("cannot record to"), "{error}");
}

#[tokio::test]
async fn a_recording_that_fails_breaks_nothing_and_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let (reports, reported) = std::sync::mpsc::channel();
    let place = folder.path().join("r");
    let recorder = Recorder::open(&place, move |text| reports.send(text.to_owned()).unwrap()).unwrap();
    fs::remove_dir(&place).unwrap();
    let mode = ExchangeMode::Recorded(Arc::new(recorder));
    let answer = || vec![head("200 OK"), text("one"), END.to_owned()];
    let base = server(vec![answer(), answer()]).await;
    for _ in 0..2 {
        let deltas = ask(&mode, request(&base, "a", "1")).await;
        assert!(matches!(deltas.last(), Some(Delta::Done { .. })), "{deltas:?}");
    }
    let report = reported.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(report.contains("recording to") && report.contains("Sessions go on"), "{report}");
    drop(mode);
    assert!(reported.recv_timeout(Duration::from_secs(20)).is_err());
}

/// The bodies of all APIs: with calls, reasoning or signatures, and in the framing of each.
const BODIES: &[(&str, &str)] = &[
    ("anthropic-messages", "captures/aimock-messages-tool-parallel.body"),
    ("azure-openai-responses", "captures/aimock-responses-tool-parallel.body"),
    ("bedrock-converse-stream", "captures/aimock-bedrock-reasoning.body"),
    ("google-generative-ai", "composed/google-thinking-signed.sse"),
    ("google-vertex", "captures/aimock-google-vertex-tool-parallel.body"),
    ("mistral-conversations", "composed/mistral-calls-in-pieces.sse"),
    ("openai-codex-responses", "captures/aimock-responses-tool.body"),
    ("openai-completions", "captures/aimock-chat-tool-parallel.body"),
    ("openai-responses", "captures/aimock-responses-tool-result.body"),
    ("pi-messages", "composed/pi-messages-full.sse"),
];

/// A token that names an account: `{"https://api.openai.com/auth": {"chatgpt_account_id": "a"}}`.
const CHATGPT_TOKEN: &str =
    "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYSJ9fQ.c2lnbmF0dXJl";

/// A server that answers one request with this body in two pieces, cut where nothing ends.
async fn body_server(api: &str, body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let kind =
        if api.starts_with("bedrock") { "application/vnd.amazon.eventstream" } else { "text/event-stream" };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !whole(&request) {
            request.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(head.as_bytes()).await.unwrap();
        let (first, second) = body.split_at(body.len() / 2 + 1);
        stream.write_all(first).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        stream.write_all(second).await.unwrap();
    });
    base
}

/// Whether all of a request with a body in JSON has come.
fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    text.split_once("\r\n\r\n")
        .is_some_and(|(_, body)| serde_json::from_str::<serde_json::Value>(body).is_ok())
}

#[tokio::test]
async fn every_api_plays_back_the_same_deltas() {
    use crate::ProviderRegistry;

    let apis = BODIES.iter().map(|(api, _)| *api).chain(["scripted"]);
    assert_eq!(apis.collect::<Vec<_>>(), ProviderRegistry::builtin().apis().collect::<Vec<_>>());
    let folder = tempfile::tempdir().unwrap();
    for (api, path) in BODIES {
        let place = folder.path().join(api);
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data").join(path);
        let base = body_server(api, fs::read(data).unwrap()).await;
        let request = |base_url: &str, credentials: Credentials| {
            let plain = request(base_url, "the-session", "Hi.");
            let model = Model { api: (*api).into(), ..(*plain.model).clone() };
            Request { model: Arc::new(model), credentials, ..plain }
        };
        let key = if *api == "openai-codex-responses" { CHATGPT_TOKEN } else { KEY };
        let account = agentd_http::Account {
            region: Some("eu-central-1".into()),
            project: Some("p".into()),
            location: Some("europe-west4".into()),
            ..agentd_http::Account::default()
        };
        let credentials = Credentials { api_key: Some(Secret::new(key)), account, ..Credentials::default() };
        let ask = async |mode: ExchangeMode, request: Request| -> Vec<Delta> {
            let provider =
                ProviderRegistry::with_exchange_mode(mode, agentd_memory::MemoryAccount::default())
                    .get(api)
                    .unwrap();
            provider.stream(request, CancellationToken::new()).collect().await
        };
        let live = ask(recorder(&place), request(&base, credentials)).await;
        assert!(matches!(live.last(), Some(Delta::Done { .. })) && live.len() > 2, "{api}: {live:?}");
        let written = fs::read_to_string(&files(&place)[0]).unwrap();
        assert!(
            !written.contains(key) && written.ends_with("\"reason\":\"complete\"}\n"),
            "{api}: {written}"
        );
        assert_eq!(written.contains("\"base64\":"), api.starts_with("bedrock"), "{api}: {written}");

        let player = Arc::new(Player::open(&place, PlayerOptions::default()).unwrap());
        let (credentials, base_url) = player.credentials(&request(&base, Credentials::default()).model);
        let played = ask(ExchangeMode::Replayed(player), request(&base_url.unwrap(), credentials)).await;
        // Calls without ids are given some with the time in them.
        let [played, live] = [played, live].map(|deltas| super::compare::shape(&format!("{deltas:?}"), ""));
        assert_eq!(played, live, "{api}");
    }
}

#[tokio::test]
async fn a_bug_report_is_played_like_the_recordings_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let answers = [text("one"), text("two")].map(|text| vec![head("200 OK"), text, END.to_owned()]);
    let base = server(answers.to_vec()).await;
    let mode = recorder(folder.path());
    for prompt in ["1", "2"] {
        ask(&mode, request(&base, "a", prompt)).await;
    }
    let mut report =
        "{\"type\":\"bug_report\",\"version\":1}\n{\"type\":\"doctor\",\"error\":\"x\"}\n".to_owned();
    for file in files(folder.path()) {
        let name = file.file_name().unwrap().to_str().unwrap();
        for line in fs::read_to_string(&file).unwrap().lines() {
            let line = serde_json::json!({"type": "recording", "file": name, "line": line});
            report.push_str(&format!("{line}\n"));
        }
        report.push_str("{\"type\":\"log\",\"line\":\"between\"}\n");
    }
    let path = folder.path().join("report.txt");
    fs::write(&path, report).unwrap();
    let mode = player(&path, PlayerOptions::default());
    for (prompt, expected) in [("1", "one"), ("2", "two")] {
        assert_eq!(folded(&ask(&mode, request(&base, "x", prompt)).await).0, expected);
    }
    let mode = player(&path, PlayerOptions::default());
    let differs = failure(&ask(&mode, request(&base, "x", "3")).await);
    assert!(differs.contains("report.txt (000001-openai-completions-p.jsonl)"), "{differs}");
}
