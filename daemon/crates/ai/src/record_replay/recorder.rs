//! A folder that exchanges are written to, a file each.

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

use agentd_http::Redactor;
use agentd_protocol::model::Model;
use reqwest::{Url, header::HeaderMap};
use tokio::sync::mpsc;

use super::{
    About,
    format::{End, Line, Sent, VERSION},
    tape::{Entry, Tape, shown_headers},
};

/// How many lines of an exchange wait for the disk; beyond that the answer is read as fast as it is written.
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
        about: &About,
        (url, headers, body): (&Url, &HeaderMap, &[u8]),
        redactor: &Redactor,
    ) -> Tape {
        let body = redactor.redact(String::from_utf8_lossy(body).into_owned());
        let is_line = !body.contains(['\n', '\r']);
        let (body, body_text) = match serde_json::from_str(&body) {
            Ok(json) if is_line => (Some(json), None),
            _ => (None, Some(body)),
        };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let base_url = Url::parse(&about.base_url).map(|url| shown_url(&url, redactor)).unwrap_or_default();
        let sent = Sent {
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
        let tape = Tape::new(lines, redactor.stream(), redactor.clone(), Instant::now());
        tape.write(Line::Request(Box::new(sent))).await;
        tape
    }

    /// Writes what comes, to the end of the exchange.
    fn write(&self, name: &str, mut lines: mpsc::Receiver<Entry>) {
        let Err(error) = self.try_write(name, &mut lines) else { return };
        if !self.failed.swap(true, Ordering::Relaxed) {
            (self.report)(&format!(
                "Warning: recording to {} failed ({error}). Sessions go on; this and later recordings may be incomplete.",
                self.folder.display()
            ));
        }
    }

    fn try_write(&self, name: &str, lines: &mut mpsc::Receiver<Entry>) -> io::Result<()> {
        let mut file = BufWriter::new(self.file(name)?);
        let mut ended = false;
        while let Some(Entry { line, written }) = lines.blocking_recv() {
            ended |= matches!(line, Line::End { .. } | Line::Failure(_));
            put(&mut file, &line)?;
            if lines.is_empty() {
                file.flush()?;
            }
            if let Some(written) = written {
                file.flush()?;
                // Whoever waited may be gone.
                let _ = written.send(());
            }
        }
        if !ended {
            put(&mut file, &Line::End { ms: 0, reason: End::Aborted })?;
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

/// What a replay needs to know of a model. The address is recorded beside it, and headers go nowhere then.
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

fn put(file: &mut BufWriter<File>, line: &Line) -> io::Result<()> {
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
