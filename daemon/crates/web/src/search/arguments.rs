//! The arguments of a search.

use agentd_protocol::settings::WebSearchProvider;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

/// Results of a call that says nothing of them.
const RESULTS: u64 = 10;

/// How old results may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Recency {
    Day,
    Week,
    Month,
    Year,
}

impl Recency {
    /// The moment from which on results count.
    pub(super) fn since(self) -> Timestamp {
        let days = match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
            Self::Year => 365,
        };
        Timestamp::now().checked_sub(SignedDuration::from_hours(24 * days)).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SearchArguments {
    pub(super) query: String,
    pub(super) recency: Option<Recency>,
    limit: Option<u64>,
    num_search_results: Option<u64>,
    pub(super) max_tokens: Option<u64>,
    pub(super) temperature: Option<f64>,
    /// Who is asked first.
    pub(super) provider: Option<WebSearchProvider>,
    /// Whether nobody else is asked where the first one fails.
    #[serde(default)]
    pub(super) no_fallback: bool,
}

impl SearchArguments {
    /// How many results are wanted.
    pub(super) fn count(&self) -> u64 {
        self.limit.or(self.num_search_results).unwrap_or(RESULTS).clamp(1, 20)
    }
}

impl Recency {
    /// The word of Brave.
    pub(super) fn of_brave(self) -> &'static str {
        match self {
            Self::Day => "pd",
            Self::Week => "pw",
            Self::Month => "pm",
            Self::Year => "py",
        }
    }

    /// The word of SearXNG.
    pub(super) fn of_searxng(self) -> &'static str {
        match self {
            Self::Day => "day",
            // It knows no week.
            Self::Week | Self::Month => "month",
            Self::Year => "year",
        }
    }
}

impl Recency {
    /// The word in the arguments.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}
