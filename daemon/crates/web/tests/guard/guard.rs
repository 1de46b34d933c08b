//! The process guard of the integration tests, and the program that reads PDF files.

fn main() -> std::process::ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == agentd_web::PDF_ARGUMENT) {
        return agentd_web::run_pdf_text();
    }
    agentd_process::run_guard()
}
