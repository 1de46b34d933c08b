//! The verbs about the daemon itself, and the choice of the daemon for `prompt` and `rpc`.

use std::time::Duration;

use agentd_protocol::settings::parse_duration;
use clap::Args;

/// The longest time to wait that can be asked for: a day.
const MAX_WAIT_SECONDS: u64 = 86_400;

/// A time to wait: a number of seconds, or `90s`, `10m`, `1h30m`.
fn wait_time(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    // A time to wait may be none, unlike the limits that `parse_duration` reads.
    let seconds = if is_number { number.parse().unwrap_or(u64::MAX) } else { parse_duration(text)? };
    if seconds > MAX_WAIT_SECONDS {
        return Err(format!("expected at most {MAX_WAIT_SECONDS} s, got \"{text}\""));
    }
    Ok(Duration::from_secs(seconds))
}

/// Which daemon does the work. Without a flag: the user's where it runs, else one of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
pub(crate) struct DaemonChoice {
    /// Use the daemon that all clients share, and start it if it does not run; the session stays in its memory
    #[arg(long, conflicts_with = "private")]
    pub(crate) shared: bool,

    /// Use an agentd of its own, which ends with this command, even when the daemon runs
    #[arg(long)]
    pub(crate) private: bool,
}

/// The flags of `agentctl up`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl up
  agentctl up --json              where it is, for programs
  agentctl up --timeout 2m        waits so long for a daemon that is ending
  AGENTD_LOG=debug agentctl up    with a log that says more

A daemon that is ending finishes its work first. `up` says what it waits for, waits until it has ended, and starts the next one.

Exit codes:
  0    it runs
  3    it is missing or did not start
  9    another one is ending and has not ended in time")]
pub(crate) struct UpOptions {
    /// Print where and what it is as JSON: as `agentctl status --json`, and whether it was started now
    #[arg(long)]
    pub(crate) json: bool,

    /// How long to wait for a daemon that is ending: 30, 90s, 10m; 0: not at all. Default: as long as its work may take
    #[arg(long, value_name = "DURATION", value_parser = wait_time)]
    pub(crate) timeout: Option<Duration>,
}

/// The flags of `agentctl down`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl down                   work is finished first
  agentctl down --deadline 5m     but not for longer than 5 min
  agentctl down --abort           at once

Both flags reach a daemon that is ending already, also from a second terminal while the first `down` waits: they make its end
sooner, never later.

Exit codes:
  0    it has ended, or did not run
  1    it has not ended in time
  3    it does not answer")]
pub(crate) struct DownOptions {
    /// Stop work instead of letting it finish
    #[arg(long)]
    pub(crate) abort: bool,

    /// How long work has to finish before it is stopped: a number of seconds, 90s, 10m, 1h30m
    #[arg(long, value_name = "DURATION", conflicts_with = "abort", value_parser = wait_time)]
    pub(crate) deadline: Option<Duration>,
}

/// The flags of `agentctl status`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl status
  agentctl status --json          with the path of the socket

Of a daemon that is ending it says which sessions it waits for, what they do, and how to end it sooner.

Exit codes:
  0    it runs
  3    it does not run, or does not answer
  9    it is ending, and takes no new work")]
pub(crate) struct StatusOptions {
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl logs`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl logs -n 20             the last 20 lines
  agentctl logs --follow          and what is added

The log is logs/agentd.log in the agent directory. AGENTD_LOG at `agentctl up` sets what goes into it.

Exit codes:
  1    there is none")]
pub(crate) struct LogsOptions {
    /// Print new lines too, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// How many of the last lines to print first
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) lines: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_wait() {
        for (text, seconds) in
            [("0", 0), ("0s", 0), ("5", 5), ("90s", 90), ("1h30m", 5_400), ("86400", 86_400)]
        {
            assert_eq!(wait_time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "x", "-1", "1.5", "86401", "25h", "99999999999999999999999"] {
            assert!(wait_time(text).is_err(), "{text}");
        }
    }
}
