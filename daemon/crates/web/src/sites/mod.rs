//! Sites whose pages have a better form than their HTML. The handlers stand in an order, and the first that knows a URL has it; where it
//! comes to nothing, the page is read like any other.

mod git_hosts;
mod packages;
mod plan;
mod reference;

use reqwest::Url;

use self::plan::Place;
pub(crate) use self::plan::{Form, Plan, Sites};

type Handler = fn(&Sites, &Place<'_>) -> Option<Plan>;

/// The handlers, in their order.
const HANDLERS: [Handler; 8] = [
    git_hosts::github,
    git_hosts::raw_files,
    packages::crates_io,
    packages::pypi,
    packages::rubygems,
    reference::arxiv,
    reference::wikipedia,
    reference::rfc,
];

impl Sites {
    /// What the first handler makes of a URL that knows it.
    pub(crate) fn plan(&self, url: &Url) -> Option<Plan> {
        let host = self.host_of(url);
        let path = url.path().split('/').filter(|part| !part.is_empty()).collect();
        let place = Place { host: host.strip_prefix("www.").unwrap_or(&host), path };
        HANDLERS.iter().find_map(|handler| handler(self, &place))
    }
}

#[cfg(test)]
mod tests;
