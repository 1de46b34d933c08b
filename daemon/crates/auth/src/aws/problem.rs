//! Why there are no keys of AWS.

use std::{io, path::Path};

use reqwest::Url;

/// Why there are no keys of AWS, for the user: what was tried, what went wrong, what to do. No secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AwsProblem(String);

impl AwsProblem {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn file(path: &Path, error: &io::Error) -> Self {
        Self(format!("{} cannot be read: {error}.", path.display()))
    }
}

/// The end of a region's host names behind `amazonaws.com`.
pub(super) fn domain_end(region: &str) -> &'static str {
    if region.starts_with("cn-") { ".cn" } else { "" }
}

/// An address that was put together.
///
/// # Errors
/// Names `from`, which it comes from.
pub(super) fn address(text: &str, from: &str) -> Result<Url, AwsProblem> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| AwsProblem::new(format!("{from} makes no http or https address.")))
}
