//! Getting what is at a URL: bounded in size, time and redirects, from public addresses alone, by the rules of HTTP caches and of sites.

pub(crate) mod address;
mod cache;
mod clients;
mod error;
mod fetch;
pub(crate) mod resolver;
pub(crate) mod robots;
mod url;

pub(crate) use cache::HttpCache;
pub(crate) use clients::Clients;
pub use error::WebError;
pub(crate) use fetch::{Answer, Fetcher, Get};
pub(crate) use robots::RobotsCache;
pub(crate) use url::normalise;
