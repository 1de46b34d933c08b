//! Hearing of changes of a stateless server: a request that it answers when it stops telling of them.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::peer::{Peer, RequestTerms};

/// How long one subscription is waited for: longer than any connection.
const LIFE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The pause before the next subscription; each that ends sooner than the last pause doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Subscriptions in a row that end at once, after which the server is taken to have none.
const MAX_FAILURES: u32 = 8;

/// The lists whose changes are told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Topics {
    pub(super) tools: bool,
    pub(super) prompts: bool,
}

/// Subscribes to changes of lists for as long as this is polled, and tells `missed` when some may have been missed. Ends when the
/// server does not seem to have subscriptions.
pub(super) async fn listen(peer: Peer, topics: Topics, missed: impl Fn()) {
    let (mut pause, mut failures) = (FIRST_PAUSE, 0);
    loop {
        let begun = tokio::time::Instant::now();
        let mut notifications = json!({});
        for (name, is_wanted) in [("toolsListChanged", topics.tools), ("promptsListChanged", topics.prompts)]
        {
            if is_wanted {
                notifications[name] = json!(true);
            }
        }
        let params = json!({"notifications": notifications});
        let ended = peer.request("subscriptions/listen", params, RequestTerms::within(LIFE)).await;
        if begun.elapsed() > pause {
            (pause, failures) = (FIRST_PAUSE, 0);
        } else {
            failures += 1;
        }
        if failures >= MAX_FAILURES || peer.closed().is_some() {
            let error = ended.err().map(|error| super::clean(&error.to_string()));
            tracing::debug!(error, "an MCP server does not tell of changes");
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        missed();
    }
}
