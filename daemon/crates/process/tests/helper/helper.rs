//! What the integration tests start: the guard, or a daemon that they kill.

mod daemon;
#[cfg(target_os = "linux")]
mod escape;

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("guard") => agentd_process::run_guard(),
        Some("daemon") => daemon::run(),
        #[cfg(target_os = "linux")]
        Some("escape") => escape::run(&env::args().skip(2).collect::<Vec<_>>()),
        Some("probe") => {
            let support = serde_json::to_vec(&agentd_sandbox::probe()).unwrap_or_default();
            let told = std::io::Write::write_all(&mut std::io::stdout(), &support);
            if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => ExitCode::FAILURE,
    }
}
