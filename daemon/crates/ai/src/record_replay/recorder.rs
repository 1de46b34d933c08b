//! Records exchanges to a folder, one file each.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use agentd_http::{Redactor, StreamRedactor};
use agentd_protocol::model::Model;
use reqwest::{Url, header::HeaderMap};
use tokio::sync::{mpsc, oneshot};

use super::format::{
    ExchangeEnd, ExchangeInfo, RecordedFailure, RecordedRequest, RecordingLine, VERSION, chunk,
};
use crate::failure::{Failure, FailureKind};

/// The lines of an exchange that wait for the disk; beyond them the answer is read as fast as it is written.
const WAITING_LINES: usize = 64;

/// Writes exchanges to a folder.
pub struct Recorder {
    folder: PathBuf,
    /// The number of the last file.
    last: AtomicU64,
    failed: AtomicBool,
    report: Box<dyn Fn(&str) + Send + Sync>,
}

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot record to {folder}: {source}")]
pub struct RecorderError {
    folder: PathBuf,
    source: io::Error,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Records to `folder`, which is made where it is missing (0700), beside what is there already. `report` hears once of a
    /// recording that fails later on: that breaks no session. Blocks on the file system.
    ///
    /// # Errors
    /// [`RecorderError`] where the folder cannot be made, or nothing can be written to it.
    pub fn open(folder: &Path, report: impl Fn(&str) + Send + Sync + 'static) -> Result<Self, RecorderError> {
        let failed = |source| RecorderError { folder: folder.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let mut last = 0;
        for entry in fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number = name.to_str().and_then(|name| name.split_once('-')?.0.parse::<u64>().ok());
            last = last.max(number.unwrap_or(0));
        }
        let probe = folder.join(".writable");
        private(&probe).and_then(|_| fs::remove_file(&probe)).map_err(failed)?;
        Ok(Self {
            folder: folder.to_owned(),
            last: AtomicU64::new(last),
            failed: AtomicBool::new(false),
            report: Box::new(report),
        })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Begins the recording of an attempt.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        about: &ExchangeInfo,
        (url, headers, body): (&Url, &HeaderMap, &[u8]),
        redactor: &Redactor,
    ) -> ExchangeRecorder {
        let body = redactor.redact(String::from_utf8_lossy(body).into_owned());
        let is_line = !body.contains(['\n', '\r']);
        let (body, body_text) = match serde_json::from_str(&body) {
            Ok(json) if is_line => (Some(json), None),
            _ => (None, Some(body)),
        };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let base_url = Url::parse(&about.base_url).map(|url| shown_url(&url, redactor)).unwrap_or_default();
        let sent = RecordedRequest {
            version: VERSION,
            agentd: env!("CARGO_PKG_VERSION").to_owned(),
            time: u64::try_from(time).unwrap_or(u64::MAX),
            api: about.api.clone(),
            provider: about.provider.clone(),
            model: about.model.clone(),
            session: about.session.clone(),
            base_url,
            account: about.account.clone().into(),
            definition: about.definition.as_deref().and_then(|model| definition(model, redactor)),
            method: "POST".to_owned(),
            url: shown_url(url, redactor),
            headers: shown_headers(headers, redactor),
            body,
            body_text,
        };
        let (lines, written) = mpsc::channel(WAITING_LINES);
        let name = format!("{}-{}", about.api, about.provider);
        let recorder = Arc::clone(self);
        tokio::task::spawn_blocking(move || recorder.write(&name, written));
        let tape = ExchangeRecorder::new(lines, redactor.stream(), redactor.clone(), Instant::now());
        tape.write(RecordingLine::Request(Box::new(sent))).await;
        tape
    }

    /// Writes what comes, to the end of the exchange.
    fn write(&self, name: &str, mut lines: mpsc::Receiver<QueuedLine>) {
        let Err(error) = self.try_write(name, &mut lines) else { return };
        if !self.failed.swap(true, Ordering::Relaxed) {
            (self.report)(&format!(
                "Warning: recording to {} failed ({error}). Sessions go on; this and later recordings may be incomplete.",
                self.folder.display()
            ));
        }
    }

    fn try_write(&self, name: &str, lines: &mut mpsc::Receiver<QueuedLine>) -> io::Result<()> {
        let mut file = BufWriter::new(self.file(name)?);
        let mut ended = false;
        while let Some(QueuedLine { line, written }) = lines.blocking_recv() {
            ended |= matches!(line, RecordingLine::End { .. } | RecordingLine::Failure(_));
            put(&mut file, &line)?;
            if lines.is_empty() {
                file.flush()?;
            }
            if let Some(written) = written {
                file.flush()?;
                // The waiting task may be gone.
                let _ = written.send(());
            }
        }
        if !ended {
            put(&mut file, &RecordingLine::End { ms: 0, reason: ExchangeEnd::Aborted })?;
        }
        file.flush()
    }

    /// A new file with the next number.
    fn file(&self, name: &str) -> io::Result<File> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let name: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).take(80).collect();
        loop {
            let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
            match private(&self.folder.join(format!("{number:06}-{name}.jsonl"))) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
    }
}

/// The definition of a model for a replay. The address is recorded separately, and a replay needs no headers.
fn definition(model: &Model, redactor: &Redactor) -> Option<Box<Model>> {
    let shown =
        Model { base_url: String::new(), headers: None, other: serde_json::Map::new(), ..model.clone() };
    let text = redactor.redact(serde_json::to_string(&shown).ok()?);
    // A secret that is part of the text's own syntax leaves nothing that can be read: then it is left out.
    serde_json::from_str(&text).ok()
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn put(file: &mut BufWriter<File>, line: &RecordingLine) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}

/// The address without user, password and what of its query may be secret.
pub(super) fn shown_url(url: &Url, redactor: &Redactor) -> String {
    let mut shown = url.clone();
    // Fails only for addresses that cannot have a user, which then have none.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    if url.query().is_some() {
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let mut query = shown.query_pairs_mut();
        query.clear();
        for (name, value) in pairs {
            let value = if Redactor::hides(&name) { "[redacted]".to_owned() } else { value };
            query.append_pair(&name, &value);
        }
        drop(query);
    }
    redactor.redact(shown.into())
}

/// Takes down one exchange. Dropping it before its end records that the answer was aborted.
pub(crate) struct ExchangeRecorder {
    lines: mpsc::Sender<QueuedLine>,
    redactor: Redactor,
    stream: StreamRedactor,
    begun: Instant,
}

/// A line on its way to the disk.
pub(super) struct QueuedLine {
    pub(super) line: RecordingLine,
    /// Hears that the line is written.
    pub(super) written: Option<oneshot::Sender<()>>,
}

impl ExchangeRecorder {
    pub(super) fn new(
        lines: mpsc::Sender<QueuedLine>,
        stream: StreamRedactor,
        redactor: Redactor,
        begun: Instant,
    ) -> Self {
        Self { lines, redactor, stream, begun }
    }

    /// Takes down a line. A recording that has failed takes nothing, and has been reported.
    pub(super) async fn write(&self, line: RecordingLine) {
        let _ = self.lines.send(QueuedLine { line, written: None }).await;
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The answer begins.
    pub(crate) async fn response(&self, status: u16, headers: &HeaderMap) {
        let headers = shown_headers(headers, &self.redactor);
        self.write(RecordingLine::Response { ms: self.ms(), status, headers }).await;
    }

    /// Bytes of the body.
    pub(crate) async fn chunk(&mut self, bytes: &[u8]) {
        let bytes = self.stream.feed(bytes);
        if !bytes.is_empty() {
            self.write(chunk(self.ms(), bytes)).await;
        }
    }

    /// The exchange is over. Returns when that is on its way to the disk: what follows may be the end of the process.
    pub(crate) async fn end(mut self, failure: Option<&Failure>) {
        let ms = self.ms();
        let rest = self.stream.finish();
        if !rest.is_empty() {
            self.write(chunk(ms, rest)).await;
        }
        let line = match failure {
            Some(failure) if failure.kind == FailureKind::Aborted => {
                RecordingLine::End { ms, reason: ExchangeEnd::Aborted }
            }
            Some(failure) => RecordingLine::Failure(RecordedFailure::of(ms, failure)),
            None => RecordingLine::End { ms, reason: ExchangeEnd::Complete },
        };
        let (written, done) = oneshot::channel();
        if self.lines.send(QueuedLine { line, written: Some(written) }).await.is_ok() {
            // A recording that failed on the way drops its end.
            let _ = done.await;
        }
    }
}

/// Headers without secrets, in their order.
pub(super) fn shown_headers(headers: &HeaderMap, redactor: &Redactor) -> Vec<(String, String)> {
    let shown = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
        let value = if value.is_sensitive() || Redactor::hides(name.as_str()) {
            "[redacted]".to_owned()
        } else {
            redactor.redact(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        (name.as_str().to_owned(), value)
    };
    headers.iter().map(shown).collect()
}
