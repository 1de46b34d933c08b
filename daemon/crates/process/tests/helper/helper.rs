//! What the integration tests start: the guard, or a daemon that they kill.

mod daemon;

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("guard") => agentd_process::run_guard(),
        Some("daemon") => daemon::run(),
        _ => ExitCode::FAILURE,
    }
}
