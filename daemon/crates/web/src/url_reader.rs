//! `http://` and `https://` in the tool `read`.

use std::sync::Arc;

use agentd_agent::ToolError;
use agentd_tools::{LineSuffix, ReadHow, UrlContent, UrlReader};
use tokio_util::sync::CancellationToken;

use crate::{WebReader, net::normalise, page::PageContent, pages::PageKey};

struct WebUrls {
    start: &'static str,
    reader: WebReader,
}

/// The readers of both schemes.
#[must_use]
pub fn web_urls(reader: &WebReader) -> Vec<Arc<dyn UrlReader>> {
    let of = |start| Arc::new(WebUrls { start, reader: reader.clone() }) as Arc<dyn UrlReader>;
    vec![of("https://"), of("http://")]
}

impl UrlReader for WebUrls {
    fn start(&self) -> &str {
        self.start
    }

    fn line_suffix(&self, before: &str) -> LineSuffix {
        // Without a path, it is a port.
        if before.contains('/') { LineSuffix::Always } else { LineSuffix::Never }
    }

    fn read<'a>(&'a self, rest: &'a str, cancel: &'a CancellationToken) -> UrlContent<'a> {
        self.read_as(rest, ReadHow::default(), cancel)
    }

    fn read_as<'a>(&'a self, rest: &'a str, how: ReadHow, cancel: &'a CancellationToken) -> UrlContent<'a> {
        Box::pin(async move {
            let error = |error: crate::WebError| ToolError(error.to_string());
            let url = normalise(&format!("{}{rest}", self.start)).map_err(error)?;
            let key = self.reader.key(url.as_str(), how.raw);
            if how.continues
                && let Some(text) = self.reader.store.pages.find(&key)
            {
                return Ok(text.as_bytes().to_vec());
            }
            let page = self.reader.read(url.as_str(), how.raw, None, cancel).await.map_err(error)?;
            if let PageContent::Image(image) = page.content {
                return Ok(image.to_vec());
            }
            let text: Arc<str> = page.shown().into();
            self.reader.store.pages.store(key, &text);
            Ok(text.as_bytes().to_vec())
        })
    }
}

impl WebReader {
    /// The name under which a page is kept.
    pub(crate) fn key(&self, url: &str, raw: bool) -> PageKey {
        (self.options.session.clone(), url.to_owned(), raw)
    }
}
