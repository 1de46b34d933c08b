//! The `read` tool: its description and its calls.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_images::Images;
use agentd_process::ArtifactFolder;
use agentd_protocol::tool::{ConstrainedSampling, ToolResult, ToolSpec, TruncatedBy, Truncation};
use agentd_protocol::{agent_mode::LOCAL_URL, image_kind::ImageKind, message::ContentBlock};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    image,
    open::open,
    scan::{Range, Scanned, Selection, scan},
    selector::{LineRange, Selected, scheme, split},
    url::{LineSuffix, ReadHow, SessionUrls},
};
use crate::{
    arguments, blocking, errno,
    home::Home,
    kernel,
    limits::{MAX_BYTES, MAX_LINES, MAX_SIZE},
    operations::{FileHost, FileSystem, LocalHost, OpenFile},
    output_meta::OutputMeta,
    session_folder::{SessionFolder, Use, own_file},
    truncate::{TextLimits, format_size},
};

/// Reads text files, a part at a time where they are long, and images.
pub struct ReadTool {
    home: Home,
    host: Arc<dyn FileHost>,
    artifacts: Option<ArtifactFolder>,
    own: Option<SessionFolder>,
    urls: SessionUrls,
}

impl ReadTool {
    /// The tool, with the home directory of the process for `~`.
    #[must_use]
    pub fn new() -> Self {
        Self {
            home: Home::default(),
            host: Arc::new(LocalHost),
            artifacts: None,
            own: None,
            urls: SessionUrls::default(),
        }
    }

    /// Sets the session's home directory, which `~` means in paths.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Home::new(home);
        self
    }

    /// Sets the host of the files; the default is this machine.
    #[must_use]
    pub fn with_host(mut self, host: Arc<dyn FileHost>) -> Self {
        self.host = host;
        self
    }
}

/// The prefix of an artifact's path; its id follows.
const ARTIFACT_URL: &str = "artifact://";

impl ReadTool {
    /// Whether lines can be asked for behind a path.
    fn takes_lines(&self, path: &str) -> bool {
        [ARTIFACT_URL, LOCAL_URL].iter().any(|start| path.starts_with(start))
            || self.urls.find(path).is_some_and(|(urls, _)| urls.takes_lines())
    }

    /// Reads one file or URL; `raw` is for URLs that know more than one form of a content.
    async fn read_one(
        &self,
        mut arguments: ReadArguments,
        raw: bool,
        invocation: &Invocation,
    ) -> Result<ToolResult, ToolError> {
        let Invocation { cancel, images, sees_images, cwd, .. } = invocation;
        let stop = cancel.clone();
        if let Some((urls, rest)) = self.urls.find(&arguments.path) {
            let how = ReadHow { raw, continues: arguments.offset.is_some() || arguments.limit.is_some() };
            let content = urls.read_as(rest, how, cancel).await?;
            let found = blocking::run(move || select(content.as_slice(), &arguments, &stop)).await?;
            return shown(found, cancel, images, *sees_images).await;
        }
        let mut host = Arc::clone(&self.host);
        let mut unknown = None;
        let path = if let Some(id) = arguments.path.strip_prefix(ARTIFACT_URL) {
            let path = self.artifact(id).await?;
            // The file is on this machine, wherever the tools work; messages must name it.
            arguments.path = path.display().to_string();
            host = Arc::new(LocalHost);
            path
        } else if let Some(path) = own_file(self.own.as_ref(), &arguments.path, Use::Existing).await? {
            host = Arc::new(LocalHost);
            path
        } else {
            unknown = scheme(&arguments.path).map(|scheme| self.unknown_scheme(scheme));
            self.home.resolve(&arguments.path, cwd, &*host)?
        };
        let files = host.files(cancel);
        let found = blocking::run(move || {
            if let Some(unknown) = unknown.filter(|_| files.about(&path).is_err()) {
                return Err(unknown);
            }
            read(&*files, &path, &arguments, &stop)
        });
        shown(found.await?, cancel, images, *sees_images).await
    }

    fn unknown_scheme(&self, scheme: &str) -> ToolError {
        let own = [ARTIFACT_URL, LOCAL_URL].into_iter().map(str::to_owned);
        let mut known: Vec<String> = own.chain(self.urls.starts(false)).collect();
        known.sort();
        ToolError(format!("Unknown URL scheme: {scheme}://. read knows {}.", known.join(", ")))
    }

    /// Sets the folder of the session's long outputs, for `artifact://ID`; `None` for a session without a file.
    #[must_use]
    pub fn with_artifacts(mut self, artifacts: Option<ArtifactFolder>) -> Self {
        self.artifacts = artifacts;
        self
    }

    /// Sets the folder of the session's own files, for `local://NAME`.
    #[must_use]
    pub fn with_own_files(mut self, folder: SessionFolder) -> Self {
        self.own = Some(folder);
        self
    }

    /// Sets the URLs that are no files.
    #[must_use]
    pub fn with_urls(mut self, urls: SessionUrls) -> Self {
        self.urls = urls;
        self
    }

    /// The file of the artifact `id`.
    async fn artifact(&self, id: &str) -> Result<PathBuf, ToolError> {
        let (folder, id) = (self.artifacts.clone(), id.to_owned());
        blocking::run(move || {
            let found = folder.map_or(Ok(None), |folder| folder.find(&id));
            let found = found.map_err(|error| ToolError(format!("Cannot look for artifacts: {error}")))?;
            found.map(|artifact| artifact.path).ok_or_else(|| {
                ToolError(format!(
                    "Artifact not found: {id}. Results of bash name theirs in details.meta.artifactId."
                ))
            })
        })
        .await
    }
}

impl Default for ReadTool {
    fn default() -> Self {
        Self::new()
    }
}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| Arc::new(spec()));

fn spec() -> ToolSpec {
    ToolSpec {
        name: "read".to_owned(),
        description: format!(
            "Read a text file or an image (jpg, png, gif, webp, bmp). Images come back as images. Of text, at most \
             {MAX_LINES} lines or {MAX_SIZE} come back at once, whichever is less; for the rest of a longer file, \
             call again with the offset that the result names."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the working directory or absolute"},
                "offset": {"type": "number", "description": "The line to start at; the first line is 1"},
                "limit": {"type": "number", "description": "How many lines to read at most"},
            },
            "required": ["path"],
        }),
        constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
    }
}

/// The results of several ranges as one.
fn joined(parts: Vec<ToolResult>) -> ToolResult {
    let mut parts = parts.into_iter();
    let Some(mut all) = parts.next() else { return ToolResult::default() };
    for part in parts {
        all.content.push(ContentBlock::text("\n…\n"));
        all.content.extend(part.content);
        all.structured_content = None;
    }
    all
}

/// The arguments. Fractions of numbers are dropped.
#[derive(Clone, Deserialize)]
struct ReadArguments {
    path: String,
    offset: Option<f64>,
    limit: Option<f64>,
}

impl Tool for ReadTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Read the content of a file")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec!["Look at files with read, not with cat or sed."]
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(async move {
            let arguments: ReadArguments = arguments::parse(invocation.arguments.clone())?;
            let meta = OutputMeta { internal_source: self.url(&arguments.path), ..OutputMeta::default() };
            let read = self.read_lines(arguments, &invocation).await?;
            Ok(ToolResult { details: meta.with(read.details), ..read })
        })
    }

    fn prepares_images(&self) -> bool {
        true
    }
}

impl ReadTool {
    /// The path, if it is a URL that is no file's name.
    fn url(&self, path: &str) -> Option<String> {
        let own = [ARTIFACT_URL, LOCAL_URL].iter().any(|start| path.starts_with(start));
        (own || self.urls.find(path).is_some()).then(|| path.to_owned())
    }

    /// Reads what the path names, or the lines of it that follow its name.
    async fn read_lines(
        &self,
        arguments: ReadArguments,
        invocation: &Invocation,
    ) -> Result<ToolResult, ToolError> {
        let Some(Selected { url, ranges, raw }) =
            self.takes_lines(&arguments.path).then(|| split(&arguments.path)).flatten()
        else {
            return self.read_one(arguments, false, invocation).await;
        };
        match self.urls.find(url).map_or(LineSuffix::IfMissing, |(urls, rest)| urls.line_suffix(rest)) {
            LineSuffix::Never => return self.read_one(arguments, false, invocation).await,
            LineSuffix::Always => {}
            LineSuffix::IfMissing => {
                // A name that ends like a selector comes first.
                let whole = self.read_one(arguments.clone(), false, invocation).await;
                if whole.is_ok() {
                    return whole;
                }
            }
        }
        if arguments.offset.is_some() || arguments.limit.is_some() {
            return Err(ToolError(format!(
                "{} names lines itself: leave out offset and limit.",
                arguments.path
            )));
        }
        if ranges.is_empty() {
            return self.read_one(ReadArguments { path: url.to_owned(), ..arguments }, raw, invocation).await;
        }
        let mut parts = Vec::with_capacity(ranges.len());
        for LineRange { first, count } in &ranges {
            let arguments = ReadArguments {
                path: url.to_owned(),
                // Lines are counted in floating point by models, too.
                offset: Some(*first as f64),
                limit: count.map(|count| count as f64),
            };
            parts.push(self.read_one(arguments, raw, invocation).await?);
        }
        Ok(joined(parts))
    }
}

/// The content of a file.
enum Found {
    Text(Box<ToolResult>),
    /// An image, as far as it is worth reading.
    Image(ImageKind, Vec<u8>),
}

fn read(
    files: &dyn FileSystem,
    path: &Path,
    arguments: &ReadArguments,
    cancel: &CancellationToken,
) -> Result<Found, ToolError> {
    if cancel.is_cancelled() {
        return Err(blocking::aborted());
    }
    let failed = |error: io::Error| ToolError(errno::describe(&error, "read", path));
    let OpenFile { content, limit, .. } = open(files, path, &arguments.path)?;
    let mut file = content.take(limit);
    let range = range(arguments);
    match scan(&mut file, range, TextLimits::default(), || cancel.is_cancelled()).map_err(failed)? {
        Scanned::Text(_) if file.limit() == 0 => Err(kernel::endless(&arguments.path)),
        Scanned::Text(selection) => show(&selection, range, arguments).map(Box::new).map(Found::Text),
        Scanned::Image(kind, start) => {
            let bytes = image::rest(start, file, || cancel.is_cancelled()).map_err(failed)?;
            Ok(Found::Image(kind, bytes.ok_or_else(blocking::aborted)?))
        }
        Scanned::Stopped => Err(blocking::aborted()),
    }
}

/// What a call wants of a content that is in memory.
fn select(
    mut content: &[u8],
    arguments: &ReadArguments,
    cancel: &CancellationToken,
) -> Result<Found, ToolError> {
    let failed = |error: io::Error| ToolError(format!("Cannot read {}: {error}", arguments.path));
    let range = range(arguments);
    match scan(&mut content, range, TextLimits::default(), || cancel.is_cancelled()).map_err(failed)? {
        Scanned::Text(selection) => show(&selection, range, arguments).map(Box::new).map(Found::Text),
        Scanned::Image(kind, start) => {
            let bytes = image::rest(start, content, || cancel.is_cancelled()).map_err(failed)?;
            Ok(Found::Image(kind, bytes.ok_or_else(blocking::aborted)?))
        }
        Scanned::Stopped => Err(blocking::aborted()),
    }
}

/// The result of a call: a text as it is, an image made fit for the model.
async fn shown(
    found: Found,
    cancel: &CancellationToken,
    images: &Images,
    sees_images: bool,
) -> Result<ToolResult, ToolError> {
    match found {
        Found::Text(result) => Ok(*result),
        Found::Image(kind, bytes) => {
            let shown = image::show(kind, bytes, images, sees_images);
            cancel.run_until_cancelled(shown).await.ok_or_else(blocking::aborted)
        }
    }
}

fn range(arguments: &ReadArguments) -> Range {
    // The conversion from f64 saturates: negative numbers become 0.
    let whole = |number: f64| number as u64;
    Range {
        start: arguments.offset.map_or(0, |offset| whole(offset).saturating_sub(1)),
        limit: arguments.limit.map(whole),
    }
}

/// The result's text: the lines, and the offset to continue at.
fn show(selection: &Selection, range: Range, arguments: &ReadArguments) -> Result<ToolResult, ToolError> {
    let Selection { total_lines, text, first_line_bytes } = selection;
    if range.start >= *total_lines {
        let offset = arguments.offset.unwrap_or_default();
        return Err(ToolError(format!("Offset {offset} is beyond end of file ({total_lines} lines total)")));
    }
    let first = range.start + 1;
    if text.first_line_exceeds_limit {
        let size = format_size(*first_line_bytes);
        let limit = format_size(text.max_bytes);
        let notice = format!(
            "[Line {first} is {size}, exceeds {limit} limit. Use bash: sed -n '{first}p' {} | head -c {MAX_BYTES}]",
            arguments.path
        );
        return Ok(result(notice, Some(text)));
    }
    let content = &text.content;
    if let Some(cut_by) = text.truncated_by {
        let last = range.start + text.output_lines;
        let limit = match cut_by {
            TruncatedBy::Lines => String::new(),
            TruncatedBy::Bytes => format!(" ({} limit)", format_size(text.max_bytes)),
        };
        let next = last + 1;
        let notice =
            format!("[Showing lines {first}-{last} of {total_lines}{limit}. Use offset={next} to continue.]");
        return Ok(result(format!("{content}\n\n{notice}"), Some(text)));
    }
    let end = range.limit.map_or(*total_lines, |limit| range.start.saturating_add(limit));
    if end < *total_lines {
        let left = total_lines - end;
        let next = end + 1;
        let notice = format!("[{left} more lines in file. Use offset={next} to continue.]");
        return Ok(result(format!("{content}\n\n{notice}"), None));
    }
    Ok(result(content.clone(), None))
}

fn result(text: String, truncation: Option<&Truncation>) -> ToolResult {
    ToolResult {
        details: truncation.map(|truncation| json!({ "truncation": truncation })),
        structured_content: Some(Value::String(text.clone())),
        ..ToolResult::text(text)
    }
}

#[cfg(test)]
mod tests;
