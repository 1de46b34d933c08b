//! The process guard of the integration tests.

fn main() -> std::process::ExitCode {
    agentd_process::run_guard()
}
