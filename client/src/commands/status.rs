//! `agentctl status`: reports whether a daemon runs, and its state.

use std::time::Duration;

use agentd_protocol::daemon::{Amount, DaemonEnding, DaemonStatus, EndMode, SessionActivity};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    at_work::{LiveSessions, live_sessions},
    daemon_call::block_on,
};
use crate::{
    cli::StatusOptions,
    exit::{Exit, Fault, conclude},
    output,
    render::one_line,
    rpc::CallError,
    shared_daemon::Endpoint,
};

#[derive(Serialize)]
struct StatusReport<'a> {
    running: bool,
    /// The socket of the daemon, whether one runs or not.
    socket: &'a str,
    #[serde(flatten)]
    status: Option<&'a DaemonStatus>,
    /// What the sessions do that a daemon which is ending waits for.
    #[serde(rename = "waitsFor", skip_serializing_if = "Option::is_none")]
    waits_for: Option<Vec<&'a SessionActivity>>,
}

pub(crate) fn status(options: &StatusOptions) -> Exit {
    conclude(block_on(async {
        let endpoint = Endpoint::find()?;
        let Some(connection) = endpoint.connect().await? else {
            return print(options, &endpoint, None, None);
        };
        let status = connection.status(&endpoint).await?;
        let live = match status.ending {
            None => None,
            Some(_) => match live_sessions(&connection.client).await {
                Ok(live) => Some(live),
                // It has ended meanwhile and waits for nothing.
                Err(CallError::Ended { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        print(options, &endpoint, Some(status), live.as_ref())
    }))
}

fn print(
    options: &StatusOptions,
    endpoint: &Endpoint,
    status: Option<DaemonStatus>,
    live: Option<&LiveSessions>,
) -> Result<Exit, Fault> {
    let socket = endpoint.socket.display().to_string();
    let exit = match &status {
        None => Exit::NoDaemon,
        Some(DaemonStatus { ending: Some(_), .. }) => Exit::Ending,
        Some(_) => Exit::Answered,
    };
    let found = status.is_some();
    let printed = if options.json {
        // The report has the socket already.
        let status = status.map(|status| DaemonStatus { socket: None, ..status });
        let waits_for = live.map(LiveSessions::at_work);
        output::print_json(&StatusReport {
            running: found,
            socket: &socket,
            status: status.as_ref(),
            waits_for,
        })?
    } else {
        output::print(&match status {
            Some(status) => text(&socket, &status) + &ending_text(live),
            None => format!("agentd is not running (socket {})\n", one_line(&socket)),
        })?
    };
    Ok(if printed == Exit::Answered { exit } else { printed })
}

/// What a daemon that is ending waits for, and what can be done about it.
fn ending_text(live: Option<&LiveSessions>) -> String {
    let Some(live) = live else { return String::new() };
    format!(
        "{}`agentctl down --abort` ends it at once, `agentctl down --deadline 10s` after 10 s; `agentctl up` waits, and starts \
         the next one.\n",
        live.text(Timestamp::now())
    )
}

fn text(socket: &str, status: &DaemonStatus) -> String {
    let DaemonStatus { daemon, uptime_ms, agent_dir, clients, live_sessions, running_sessions, .. } = status;
    let uptime = uptime(Duration::from_millis(*uptime_ms));
    let of = |limit: Option<u64>| limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let usage = &status.usage;
    let of_memory = usage.memory_bytes.limit.map(|limit| format!(" of {:.0} MB", megabytes(limit)));
    let memory = status
        .memory_bytes
        .map(|bytes| format!("memory     {:.1} MB{}\n", megabytes(bytes), of_memory.unwrap_or_default()));
    let counted = |name: &str, amount: &Amount| match amount {
        Amount { limit: None, .. } => String::new(),
        Amount { used, limit } => format!("{name:<11}{used}{}\n", of(*limit)),
    };
    let more = [
        counted("known", &usage.sessions),
        counted("commands", &usage.commands),
        counted("files", &usage.open_files),
    ]
    .concat();
    format!(
        "agentd {version} is {how} (pid {pid}), for {uptime}\nsocket     {socket}\nagent dir  {agent_dir}\n\
         sessions   {live_sessions} in memory, {running_sessions} at work\nclients    {clients}{of_clients}\n{memory}{more}",
        how = how(status.ending),
        of_clients = of(usage.clients.limit),
        version = one_line(&daemon.version),
        pid = daemon.pid,
        socket = one_line(socket),
        agent_dir = one_line(agent_dir),
        memory = memory.unwrap_or_default(),
    )
}

/// The daemon's state, as part of a sentence.
fn how(ending: Option<DaemonEnding>) -> String {
    match ending {
        None => "running".into(),
        Some(DaemonEnding { mode: EndMode::Abort, .. }) => "ending now".into(),
        Some(DaemonEnding { remaining_ms, .. }) => {
            format!(
                "ending once its work is done, in {} at most",
                uptime(Duration::from_millis(remaining_ms))
            )
        }
    }
}

/// A time in its two largest units.
fn uptime(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// In units of a million bytes.
#[expect(clippy::cast_precision_loss, reason = "rounded to a tenth anyway")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use agentd_protocol::daemon::{Counters, DaemonInfo, DaemonUsage};

    use super::*;

    fn example() -> DaemonStatus {
        DaemonStatus {
            daemon: DaemonInfo { name: "agentd".into(), version: "0.1.0".into(), pid: 7, epoch: "e".into() },
            uptime_ms: 125_000,
            socket: Some("/s".into()),
            agent_dir: "/a\x1b[2J".into(),
            clients: 1,
            live_sessions: 3,
            unloaded_sessions: 4,
            running_sessions: 2,
            ending: None,
            memory_bytes: Some(12_345_678),
            tasks: 9,
            usage: DaemonUsage::default(),
            counters: Counters::default(),
        }
    }

    #[test]
    fn a_line_for_each_fact_and_nothing_steers_the_terminal() {
        let text = text("/s", &example());
        assert!(
            text.starts_with("agentd 0.1.0 is running (pid 7), for 2 min 5 s\nsocket     /s\n"),
            "{text}"
        );
        assert!(
            text.contains("sessions   3 in memory, 2 at work\nclients    1\nmemory     12.3 MB\n"),
            "{text}"
        );
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn one_that_is_ending_says_so() {
        let ending = |mode| Some(DaemonEnding { mode, remaining_ms: 61_000 });
        let first = |mode| text("/s", &DaemonStatus { ending: ending(mode), ..example() });
        let expected = "agentd 0.1.0 is ending once its work is done, in 1 min 1 s at most (pid 7), for ";
        assert!(first(EndMode::Drain).starts_with(expected), "{}", first(EndMode::Drain));
        assert!(first(EndMode::Abort).starts_with("agentd 0.1.0 is ending now (pid 7), for "));
    }

    #[test]
    fn limits_stand_behind_what_is_used() {
        let amount = |used, limit| Amount { used, limit: Some(limit) };
        let usage = DaemonUsage {
            clients: amount(1, 512),
            sessions: amount(7, 10_000),
            memory_bytes: amount(12_345_678, 2_000_000_000),
            commands: amount(0, 1024),
            open_files: amount(30, 4096),
        };
        let text = text("/s", &DaemonStatus { usage, ..example() });
        let expected = "clients    1 of 512\nmemory     12.3 MB of 2000 MB\nknown      7 of 10000\n\
                        commands   0 of 1024\nfiles      30 of 4096\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn units() {
        for (seconds, expected) in
            [(0, "0 s"), (59, "59 s"), (3_599, "59 min 59 s"), (3_600, "1 h 0 min"), (90_000, "1 d 1 h")]
        {
            assert_eq!(uptime(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn json_holds_the_socket_once() {
        let status = DaemonStatus { socket: None, ..example() };
        let report = |running, status| StatusReport { running, socket: "/s", status, waits_for: None };
        let text = serde_json::to_string(&report(true, Some(&status))).unwrap();
        assert_eq!(text.matches("socket").count(), 1, "{text}");
        let none = serde_json::to_string(&report(false, None)).unwrap();
        assert_eq!(none, r#"{"running":false,"socket":"/s"}"#);
    }
}
