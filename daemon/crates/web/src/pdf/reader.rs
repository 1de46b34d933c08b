//! Asks the process that finds the text of a PDF.

use std::{ffi::OsString, time::Duration};

use agentd_process::{CommandSpec, CommandStreams, ProcessGroup};
use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::extract::{ENCRYPTED, INVALID, PDF_ARGUMENT};

/// Bytes of text that are taken. The process itself stops before.
const MAX_TEXT: u64 = 8 << 20;

/// The longest time for a file, beside that for getting it.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Starts the processes of one session.
#[derive(Debug, Clone)]
pub struct PdfReader {
    /// The session's processes, which these are among.
    pub processes: ProcessGroup,
    /// The program that calls [`super::run_pdf_text`] when its first argument is [`PDF_ARGUMENT`].
    pub program: OsString,
}

/// What was found in a PDF.
pub(crate) struct PdfText {
    pub(crate) text: String,
    /// Why there is not all of it.
    pub(crate) note: Option<String>,
}

impl PdfReader {
    /// The text of a PDF. A process that takes too long or too much is killed; the pages before count.
    ///
    /// # Errors
    /// Why there is none, in a clause. Cancel safety: the process is killed if this is dropped.
    pub(crate) async fn read(&self, file: Bytes, cancel: &CancellationToken) -> Result<PdfText, String> {
        let spec = CommandSpec {
            program: self.program.clone(),
            args: vec![PDF_ARGUMENT.into()],
            cwd: "/".into(),
            env: Vec::new(),
            streams: CommandStreams::Separate,
            // It reads no files and starts nothing; it limits itself.
            sandbox: None,
        };
        let mut process = self
            .processes
            .spawn(spec)
            .await
            .map_err(|error| format!("the reader of PDF files cannot be started: {error}"))?;
        let Some(mut input) = process.take_input() else {
            return Err("the reader of PDF files has no input".to_owned());
        };
        let mut output = process.take_output();
        let mut errors = process.errors.take();
        let feed = async move {
            // A reader that has seen enough closes its input.
            let _ = input.write_all(&file).await;
            let _ = input.shutdown().await;
        };
        let mut text = Vec::new();
        let read = async {
            if let Some(output) = &mut output {
                output.take(MAX_TEXT).read_to_end(&mut text).await.map_err(|error| error.to_string())?;
            }
            Ok::<(), String>(())
        };
        let drain = async move {
            let mut last_words = vec![0; 4096];
            if let Some(errors) = &mut errors {
                // The text of a panic is of no use to the model.
                while errors.read(&mut last_words).await.is_ok_and(|count| count > 0) {}
            }
        };
        let work = async { tokio::join!(feed, read, drain).1 };
        let deadline = Instant::now() + MAX_TIME;
        let done = cancel.run_until_cancelled(timeout_at(deadline, work)).await;
        let problem = match done {
            None => {
                process.kill().await;
                return Err("Operation aborted".to_owned());
            }
            Some(Err(_)) => {
                process.kill().await;
                Some(format!("reading the PDF took more than {} s", MAX_TIME.as_secs()))
            }
            Some(Ok(read)) => {
                read?;
                let exit = process.wait().await;
                match (exit.code, process.limit_reached()) {
                    (_, Some(limit)) => Some(limit.to_string()),
                    (0, _) => None,
                    (code, _) if code == i32::from(ENCRYPTED) => {
                        return Err("the PDF has a password".to_owned());
                    }
                    (code, _) if code == i32::from(INVALID) => {
                        return Err("the file is no PDF that can be read".to_owned());
                    }
                    _ => Some(
                        "the reader of PDF files broke down at a page, or met its limits of time and memory"
                            .to_owned(),
                    ),
                }
            }
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        match problem {
            Some(problem) if text.trim().is_empty() => Err(problem),
            problem => Ok(PdfText { text, note: problem.map(|problem| format!("not all pages: {problem}")) }),
        }
    }
}
