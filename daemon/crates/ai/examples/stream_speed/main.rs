//! Measures how fast answers stream through the adapter of every HTTP API, over a real connection: `cargo run --release -p
//! agentd-ai --example stream_speed`, with a number of deltas behind `--` if it shall not be 40000.
//!
//! CPU time is that of the thread that reads: adapter, accumulator and the JSON of the events. Twice the deltas should take
//! twice of it.

mod bodies;

use std::{
    error::Error,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use agentd_ai::{Account, Accumulator, Credentials, ProviderRegistry, Request, Secret};
use agentd_protocol::{
    Json,
    message::{Message, StopReason},
    model::Model,
};
use bodies::{Content, body};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

/// How long the arguments of the call are, in bytes.
const ARGUMENTS: usize = 1024 * 1024;

/// How much of them comes at a time, in bytes.
const PIECE: usize = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(40_000), |count| count.parse())?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| API | deltas/s | CPU for {count} deltas | for {} | growth | 1 MB of arguments, {PIECE} bytes each | memory |",
        2 * count
    )?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- | --- |")?;
    for api in ProviderRegistry::builtin().apis().filter(|api| *api != "scripted") {
        let words =
            |count: usize| body(api, Content::Text, &mut (0..count).map(|number| format!("w{number} ")));
        let (Some(once), Some(twice)) = (words(count), words(2 * count)) else {
            writeln!(out, "| {api} | not measured: bodies.rs has no answers of it | | | | | |")?;
            continue;
        };
        let once = run(api, once, StopReason::Stop).await?;
        let twice = run(api, twice, StopReason::Stop).await?;
        let arguments = arguments();
        let mut pieces =
            arguments.as_bytes().chunks(PIECE).map(|piece| String::from_utf8_lossy(piece).into_owned());
        let call = body(api, Content::Arguments, &mut pieces).ok_or("no such API")?;
        let call = run(api, call, StopReason::ToolUse).await?;
        writeln!(
            out,
            "| {api} | {:.0} | {:.3} s | {:.3} s | {:.2} | {:.3} s | {} MB |",
            count as f64 / once.wall.as_secs_f64(),
            once.cpu.as_secs_f64(),
            twice.cpu.as_secs_f64(),
            twice.cpu.as_secs_f64() / once.cpu.as_secs_f64(),
            call.cpu.as_secs_f64(),
            resident_kb()? / 1024,
        )?;
    }
    Ok(())
}

/// What one answer took.
struct Taken {
    wall: Duration,
    cpu: Duration,
}

/// Lets a server answer with `body`, and reads it as the daemon does.
async fn run(api: &str, body: Vec<u8>, expected: StopReason) -> Result<Taken, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let content_type = content_type(api);
    let server =
        thread::spawn(move || -> std::io::Result<()> { serve(listener.accept()?.0, content_type, &body) });
    let model = Arc::new(Model {
        base_url,
        api: api.into(),
        provider: "p".into(),
        id: "m".into(),
        ..Model::placeholder()
    });
    let message: Json<Message> = serde_json::from_str(r#"{"role":"user","content":"go"}"#)?;
    let mut request = Request::new(Arc::clone(&model), vec![message]);
    request.credentials = credentials(api);
    let provider = ProviderRegistry::builtin().get(api).ok_or("no such API")?;

    let (wall, cpu) = (Instant::now(), thread_cpu()?);
    let mut deltas = provider.stream(request, CancellationToken::new());
    let mut accumulator = Accumulator::new(model, 0);
    let mut bytes = 0;
    while let Some(delta) = deltas.next().await {
        if let Some(event) = accumulator.fold(delta) {
            bytes += serde_json::to_vec(&event)?.len();
        }
    }
    let failure = accumulator.failure().map(ToString::to_string);
    let message = accumulator.into_message();
    let taken = Taken { wall: wall.elapsed(), cpu: thread_cpu()?.saturating_sub(cpu) };
    if message.stop_reason != expected || bytes == 0 {
        return Err(
            format!("{api}: {:?} after {bytes} bytes of events: {failure:?}", message.stop_reason).into()
        );
    }
    server.join().map_err(|_| "the server panicked")??;
    Ok(taken)
}

/// What the adapters want to know before they ask anybody. Nobody checks it here.
fn credentials(api: &str) -> Credentials {
    let account = Account {
        region: Some("us-east-1".into()),
        project: Some("p".into()),
        location: Some("us-east1".into()),
        ..Account::default()
    };
    // The account's id is in the token: {"https://api.openai.com/auth": {"chatgpt_account_id": "a"}}.
    let key = match api {
        "openai-codex-responses" => {
            "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYSJ9fQ.x"
        }
        _ => "key",
    };
    Credentials { api_key: Some(Secret::new(key)), account, ..Credentials::default() }
}

fn content_type(api: &str) -> &'static str {
    if api.starts_with("bedrock") { "application/vnd.amazon.eventstream" } else { "text/event-stream" }
}

/// Arguments of a call that writes a file.
fn arguments() -> String {
    let start = r#"{"path":"a.txt","content":""#;
    let line = "fn main() {}\\n";
    format!("{start}{}\"}}", line.repeat((ARGUMENTS - start.len()) / line.len()))
}

/// Answers one request.
fn serve(mut stream: TcpStream, content_type: &str, body: &[u8]) -> std::io::Result<()> {
    let mut reader = BufReader::new(&stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    body.chunks(16 * 1024).try_for_each(|piece| stream.write_all(piece))
}

/// The CPU time of this thread.
fn thread_cpu() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = stat.split_whitespace().next().ok_or("an empty schedstat")?.parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// Resident memory of this process.
fn resident_kb() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0))
}
