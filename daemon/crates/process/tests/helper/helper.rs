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
        Some(agentd_sandbox::EXEC_ARGUMENT) => {
            let error = agentd_sandbox::exec_confined(env::args_os().skip(2));
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{error}\n").as_bytes());
            ExitCode::FAILURE
        }
        Some("probe") => {
            let support = serde_json::to_vec(&agentd_sandbox::probe(
                env::args_os().nth(2).as_deref().map(std::path::Path::new),
            ))
            .unwrap_or_default();
            let told = std::io::Write::write_all(&mut std::io::stdout(), &support);
            if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => ExitCode::FAILURE,
    }
}
