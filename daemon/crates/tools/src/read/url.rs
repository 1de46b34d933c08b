//! URLs that `read` and `write` take in the place of paths.

use std::{path::PathBuf, pin::Pin, sync::Arc};

use agentd_agent::ToolError;
use agentd_protocol::tool::ToolResult;
use tokio_util::sync::CancellationToken;

use super::selector::scheme;

/// The content behind a URL, or the text for the model why there is none.
pub type UrlContent<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, ToolError>> + Send + 'a>>;

/// What was written, in a sentence for the model, or the text for the model why nothing was.
pub type UrlWritten<'a> = Pin<Box<dyn Future<Output = Result<ToolResult, ToolError>> + Send + 'a>>;

/// Reads what URLs of one scheme stand for, and writes it where that is possible.
pub trait UrlReader: Send + Sync {
    /// What the URLs begin with, such as `mcp://`.
    fn start(&self) -> &str;

    /// Whether lines can be asked for behind the URL, such as `:50-100`.
    fn takes_lines(&self) -> bool {
        true
    }

    /// The content of the URL with this rest after its beginning. It fits into memory.
    fn read<'a>(&'a self, rest: &'a str, cancel: &'a CancellationToken) -> UrlContent<'a>;

    /// What lines behind a URL mean (`:50-100`), by the rest that stands before them; counts where [`Self::takes_lines`] says so.
    fn line_suffix(&self, _before: &str) -> LineSuffix {
        LineSuffix::IfMissing
    }

    /// The content for a call that says more of how it is wanted.
    fn read_as<'a>(&'a self, rest: &'a str, _: ReadHow, cancel: &'a CancellationToken) -> UrlContent<'a> {
        self.read(rest, cancel)
    }

    /// Writes to the URL with this rest after its beginning.
    fn write<'a>(&'a self, rest: &'a str, _: String, _: &'a CancellationToken) -> UrlWritten<'a> {
        Box::pin(async move { Err(ToolError(format!("{}{rest} is read-only.", self.start()))) })
    }

    /// The file that the URL with this rest stands for; `None` where it is none, or not there. Blocks.
    fn file(&self, _rest: &str) -> Option<PathBuf> {
        None
    }

    /// Whether [`Self::write`] does something.
    fn is_writable(&self) -> bool {
        false
    }
}

/// What lines behind a URL mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineSuffix {
    /// Lines, if there is no content whose name ends like that.
    IfMissing,
    /// Lines.
    Always,
    /// A part of the URL.
    Never,
}

/// How a content is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadHow {
    /// As it is, by `:raw` behind the URL.
    pub raw: bool,
    /// Some lines of it alone: what was read before counts, where it is kept.
    pub continues: bool,
}

/// Schemes that come and go while a session lives.
pub trait UrlSource: Send + Sync {
    /// The reader of a scheme in lower case, without `://`; also of one that has gone, which says so.
    fn reader(&self, scheme: &str) -> Option<Arc<dyn UrlReader>>;

    /// What the URLs of all schemes that are there begin with.
    fn starts(&self) -> Vec<String>;
}

/// The URLs that the tools of a session know beside paths.
#[derive(Clone, Default)]
pub struct SessionUrls {
    own: Vec<Arc<dyn UrlReader>>,
    others: Option<Arc<dyn UrlSource>>,
}

impl SessionUrls {
    /// Readers of one scheme each, and schemes that come and go.
    #[must_use]
    pub fn new(own: Vec<Arc<dyn UrlReader>>, others: Option<Arc<dyn UrlSource>>) -> Self {
        Self { own, others }
    }

    /// The reader of a URL, and what stands behind the beginning; `None` for a path, and for a scheme that nobody serves.
    pub(crate) fn find<'a>(&self, path: &'a str) -> Option<(Arc<dyn UrlReader>, &'a str)> {
        let scheme = scheme(path)?;
        let own = self.own.iter().find_map(|urls| Some((Arc::clone(urls), path.strip_prefix(urls.start())?)));
        own.or_else(|| {
            let reader = self.others.as_ref()?.reader(&scheme.to_ascii_lowercase())?;
            Some((reader, path.get(scheme.len() + 3..)?))
        })
    }

    /// These, and the readers of more schemes.
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = Arc<dyn UrlReader>>) -> Self {
        self.own.extend(more);
        self
    }

    /// What all URLs begin with that can be read, or written.
    pub(crate) fn starts(&self, written: bool) -> Vec<String> {
        let own = self.own.iter().filter(|urls| !written || urls.is_writable());
        let mut starts: Vec<String> = own.map(|urls| urls.start().to_owned()).collect();
        let others = self.others.as_ref();
        starts.extend(
            others
                .map(|others| others.starts())
                .unwrap_or_default()
                .into_iter()
                .filter(|start| !written || self.find(start).is_some_and(|(reader, _)| reader.is_writable())),
        );
        starts
    }
}
