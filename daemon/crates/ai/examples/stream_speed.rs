//! Measures how fast an answer streams through the chat completions adapter, over a real connection: `cargo run -p
//! agentd-ai --example stream_speed -- 40000`. Twice the deltas should take twice the CPU time.

use std::{
    error::Error,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Instant,
};

use agentd_ai::{Accumulator, Registry, Request};
use agentd_protocol::{Json, message::Message, model::Model};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(40_000), |count| count.parse())?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let server = thread::spawn(move || -> std::io::Result<()> { serve(listener.accept()?.0, count) });

    let model = Arc::new(Model {
        base_url,
        api: "openai-completions".into(),
        id: "m".into(),
        ..Model::placeholder()
    });
    let message: Json<Message> = serde_json::from_str(r#"{"role":"user","content":"go"}"#)?;
    let request = Request::new(Arc::clone(&model), vec![message]);
    let provider = Registry::builtin().get(&model.api).ok_or("no such API")?;
    let mut out = std::io::stdout();
    writeln!(out, "before: {} kB resident", resident_kb()?)?;
    let started = Instant::now();
    let mut deltas = provider.stream(request, CancellationToken::new());
    let mut accumulator = Accumulator::new(model, 0);
    let mut bytes = 0;
    while let Some(delta) = deltas.next().await {
        if let Some(event) = accumulator.fold(delta) {
            bytes += serde_json::to_vec(&event)?.len();
        }
    }
    let elapsed = started.elapsed();
    let message = accumulator.into_message();
    let length = message.text().len();
    writeln!(
        out,
        "{count} deltas: {elapsed:?}, {bytes} bytes of events, {length} bytes of text, {:?}",
        message.stop_reason
    )?;
    drop((message, deltas));
    writeln!(out, "after: {} kB resident", resident_kb()?)?;
    server.join().map_err(|_| "the server panicked")??;
    Ok(())
}

/// Answers one request with `count` deltas.
fn serve(mut stream: TcpStream, count: usize) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    let _ = stream.read(&mut buffer)?;
    let mut body =
        String::from("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
    for number in 0..count {
        body.push_str(&format!("data: {{\"id\":\"r\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"w{number} \"}}}}]}}\n\n"));
        if body.len() > 16 * 1024 {
            stream.write_all(body.as_bytes())?;
            body.clear();
        }
    }
    body.push_str("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    stream.write_all(body.as_bytes())
}

/// Resident memory of this process.
fn resident_kb() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0))
}
