//! The web for models: pages as readable text ([`WebReader`]), and searching.
//!
//! A page is got by a single GET (`net`) within limits of size, time and redirects, without cookies or credentials, and from public
//! addresses alone unless the user allows others; what comes is made into text by its kind: HTML into Markdown, feeds, JSON, PDF. Whatever a
//! server sends, memory and time are bounded. The text is marked as untrusted, since anybody can have written it.
//!
//! This crate knows nothing of sessions: what it needs of one, it gets ([`WebOptions`]).

mod archive;
mod charset;
mod content;
mod feed;
mod html;
mod json;
#[cfg(test)]
mod laws;
mod net;
mod options;
mod page;
mod pages;
mod pdf;
mod pipeline;
mod search;
mod sites;
#[cfg(test)]
mod testing;
mod tool;
mod url_reader;

pub use net::{
    WebError,
    address::{AllowedHosts, is_public},
};
pub use options::{HostRules, WebOptions, WebStore};
pub use page::{Page, PageContent};
pub use pdf::{PDF_ARGUMENT, PdfReader, run_pdf_text};
pub use pipeline::WebReader;
pub use search::{SearchAccess, SearchOptions, Vendor, VendorKind, WebSearchTool};
pub use tool::WebFetchTool;
pub use url_reader::web_urls;

/// The readable Markdown of a page of HTML, for measurements.
#[doc(hidden)]
#[must_use]
pub fn page_markdown(page: &str) -> String {
    match reqwest::Url::parse("https://example.org/a/b") {
        Ok(url) => html::read(page, &url, pipeline::MAX_TEXT).markdown,
        Err(_) => String::new(),
    }
}
