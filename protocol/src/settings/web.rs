//! The settings `web` and `webSearch`: reading pages, and searching.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Reading the web: URLs in the tool `read`, and the tool `web_fetch`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct WebSettings {
    /// Whether sessions read the web; default false, in sessions of agentctl and of editors (`agentd acp`) true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Hosts that may be read though their addresses are not public: names (`wiki.corp.example`, `*.corp.example`), with a port
    /// (`localhost:3000`) or without, addresses, and networks (`10.1.0.0/16`); default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub allowed_hosts: Option<Vec<String>>,
    /// The most bytes of a page, unpacked; default 52428800.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 52_428_800)))]
    pub max_body_bytes: Option<u64>,
    /// The time for a page, in milliseconds, where a call says none; default 20000, at most 45000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 20_000)))]
    pub timeout_ms: Option<u64>,
    /// The redirects that are followed; default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 10)))]
    pub max_redirects: Option<u32>,
    /// Whether what a site's `robots.txt` asks programs to leave alone is left alone; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub respect_robots: Option<bool>,
    /// The bytes of pages that are kept in memory, over all sessions, for as long as their servers allow; 0 keeps none; default 33554432.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 33_554_432)))]
    pub cache_bytes: Option<u64>,
}

/// The tool `web_search`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct WebSearchSettings {
    /// Who is asked, one after the other until one answers, as far as there are keys: `brave`, `tavily`, `exa`, `searxng`, and `vendor`, the
    /// search of the service that the session's model is from; default all of them in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = ["brave", "tavily", "exa", "searxng", "vendor"])))]
    pub providers: Option<Vec<WebSearchProvider>>,
    /// The time for each of them, in milliseconds; default 60000, at most 300000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 60_000)))]
    pub timeout_ms: Option<u64>,
    /// Other addresses of these services, by their names, such as `{"searxng": "https://search.corp.example"}`. SearXNG has none by default.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub base_urls: BTreeMap<WebSearchProvider, String>,
}

/// Who can be asked to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WebSearchProvider {
    /// Brave Search (`BRAVE_API_KEY`).
    Brave,
    /// Tavily (`TAVILY_API_KEY`).
    Tavily,
    /// Exa (`EXA_API_KEY`).
    Exa,
    /// An own server of SearXNG.
    Searxng,
    /// The service that the session's model is from.
    Vendor,
}

impl WebSearchProvider {
    /// All of them, in the order in which they are asked by default.
    pub const ALL: [Self; 5] = [Self::Brave, Self::Tavily, Self::Exa, Self::Searxng, Self::Vendor];

    /// The word in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Brave => "brave",
            Self::Tavily => "tavily",
            Self::Exa => "exa",
            Self::Searxng => "searxng",
            Self::Vendor => "vendor",
        }
    }
}
