//! Moves lines between a host, its translator and the daemon. Everything that waits is bounded: a host that reads nothing holds up
//! the daemon's lines, and a daemon that takes nothing the host's.

use agentd_protocol::lines::Line;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    daemon_link::{DaemonLines, DaemonLink},
    translator::Translator,
};
use crate::{
    limits::{HOST_EOF_GRACE, WAITING_HOST_BYTES, WAITING_TRANSLATED_COMMANDS},
    transport::Output,
};

/// Why lines are moved no more.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RelayEnd {
    /// The host's input has ended.
    Input,
    /// The daemon's connection has ended before.
    Daemon,
    /// The daemon cannot be used, and why.
    Unusable(String),
    /// The host's output cannot be written.
    Output,
}

/// The host's end.
pub(super) struct HostPipes {
    pub(super) lines: mpsc::Receiver<Line>,
    pub(super) output: Output,
    /// The longest line that is taken from it, in bytes.
    pub(super) max_line_bytes: usize,
}

/// Moves lines until the host's input ends, or `ending` fires, and the last answers are written.
pub(super) async fn move_lines(
    mut translator: impl Translator,
    host: HostPipes,
    daemon: DaemonLink,
    ending: CancellationToken,
) -> RelayEnd {
    let HostPipes { lines, output, max_line_bytes } = host;
    let end = run(&mut translator, lines, max_line_bytes, &output, daemon, ending).await;
    if !translator.to_host().is_empty()
        && let Some(room) = output.room().await
    {
        room.send(std::mem::take(translator.to_host()));
    }
    // The host may be gone already.
    let finished = tokio::time::timeout(HOST_EOF_GRACE, output.finish()).await;
    match (end, finished) {
        (RelayEnd::Input, Ok(Err(_))) => RelayEnd::Output,
        (end, _) => end,
    }
}

async fn run(
    translator: &mut impl Translator,
    mut host_lines: mpsc::Receiver<Line>,
    max_line_bytes: usize,
    output: &Output,
    daemon: DaemonLink,
    ending: CancellationToken,
) -> RelayEnd {
    let DaemonLink { mut commands, lines: mut daemon_lines } = daemon;
    // Set when the host's input has ended.
    let mut deadline: Option<Instant> = None;
    let mut takes_commands = true;
    loop {
        if let Some(reason) = translator.unusable() {
            translator.daemon_gone();
            return RelayEnd::Unusable(reason);
        }
        translator.start_work();
        let (to_host, to_daemon) = (translator.to_host().len(), translator.to_daemon().len());
        if deadline.is_some() && commands.is_some() && to_daemon == 0 && translator.is_idle() {
            commands = None;
        }
        tokio::select! {
            biased;
            room = output.room(), if to_host > 0 => match room {
                Some(room) => room.send(std::mem::take(translator.to_host())),
                None => return RelayEnd::Output,
            },
            room = room_for_command(commands.as_ref()), if to_daemon > 0 && takes_commands => {
                match room {
                    Some(room) => {
                        if let Some(command) = translator.to_daemon().pop_front() {
                            room.send(Line::Text(command));
                        }
                    }
                    None => takes_commands = false,
                }
            }
            line = host_lines.recv(),
                if deadline.is_none() && to_daemon < WAITING_TRANSLATED_COMMANDS && to_host < WAITING_HOST_BYTES =>
            {
                match line {
                    Some(line) => host_line(translator, line, max_line_bytes),
                    None => {
                        deadline = Some(Instant::now() + HOST_EOF_GRACE);
                        translator.host_gone();
                    }
                }
            }
            news = translator.news(), if to_host < WAITING_HOST_BYTES => translator.take_news(news),
            batch = daemon_lines.next(), if to_host < WAITING_HOST_BYTES => match batch {
                Some(batch) => take_daemon_lines(translator, &batch),
                None => {
                    translator.daemon_gone();
                    return if deadline.is_some() { RelayEnd::Input } else { RelayEnd::Daemon };
                }
            },
            () = wait_until(deadline) => {
                break;
            }
            () = ending.cancelled(), if deadline.is_none() => {
                deadline = Some(Instant::now() + HOST_EOF_GRACE);
                translator.host_gone();
            }
        }
    }
    drop(commands);
    drained(&mut daemon_lines).await
}

fn host_line(translator: &mut impl Translator, line: Line, max_line_bytes: usize) {
    match line {
        Line::Text(text) if text.trim().is_empty() => {}
        Line::Text(text) => translator.host_line(&text),
        Line::TooLong => translator.line_too_long(max_line_bytes),
        Line::Refused(failure) => translator.line_refused(&failure),
    }
}

fn take_daemon_lines(translator: &mut impl Translator, batch: &[u8]) {
    for line in batch.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match std::str::from_utf8(line) {
            Ok(line) => translator.daemon_line(line),
            Err(error) => tracing::error!(%error, "a line of the daemon is no text"),
        }
    }
}

/// Waits for room for a command; `None` when the daemon takes none any more. Cancel safe.
async fn room_for_command(commands: Option<&mpsc::Sender<Line>>) -> Option<mpsc::Permit<'_, Line>> {
    commands?.reserve().await.ok()
}

/// Waits until then, for ever without a time. Cancel safe.
async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Takes the daemon's last lines, so that it can end: nothing of them is for a host that has left.
async fn drained(lines: &mut DaemonLines) -> RelayEnd {
    let all = async { while lines.next().await.is_some() {} };
    // What takes longer is ended with the process.
    let _ = tokio::time::timeout(HOST_EOF_GRACE / 5, all).await;
    RelayEnd::Input
}
