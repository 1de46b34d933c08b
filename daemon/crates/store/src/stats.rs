//! Counts over a whole session, of every branch.

use std::path::Path;

use agentd_protocol::session::SessionStats;

use crate::{Context, SessionTotals, SessionTree, estimate::context_usage};

/// Gives the sums over the entries of one tree, which are kept while entries come: asking costs nothing.
#[derive(Debug, Clone, Default)]
pub struct StatsCounter {
    totals: SessionTotals,
}

impl StatsCounter {
    /// The sums over all entries of `tree`.
    pub fn totals(&mut self, tree: &SessionTree) -> &SessionTotals {
        self.totals.clone_from(tree.totals());
        &self.totals
    }

    /// The answer to `get_session_stats`. `window` is the model's context window in tokens, if it has one.
    pub fn stats(
        &mut self,
        tree: &SessionTree,
        context: &Context,
        file: Option<&Path>,
        window: Option<u64>,
    ) -> SessionStats {
        let totals = self.totals(tree);
        SessionStats {
            session_file: file.map(|path| path.display().to_string()),
            session_id: tree.header().id().to_owned(),
            user_messages: totals.user_messages,
            assistant_messages: totals.assistant_messages,
            tool_calls: totals.tool_calls,
            tool_results: totals.tool_results,
            total_messages: totals.total_messages,
            tokens: totals.tokens.clone(),
            cost: totals.cost,
            context_usage: window.and_then(|window| context_usage(tree, context, window)),
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::session::TokenStats;

    use super::*;
    use crate::testing::{entry, tree};

    fn usage(cost: f64) -> String {
        format!(
            r#"{{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":99,"cost":{{"total":{cost}}}}}"#
        )
    }

    #[test]
    fn everything_that_was_spent_counts() {
        let message = |id: &str, rest: &str| {
            format!(
                r#"{{"type":"message","id":"{id}","parentId":"a","message":{{{rest},"usage":{}}}}}"#,
                usage(0.5)
            )
        };
        let other = |id: &str, kind: &str| {
            format!(r#"{{"type":"{kind}","id":"{id}","parentId":"a","summary":"s","usage":{}}}"#, usage(0.25))
        };
        let tree = tree(&[
            "a -",
            &message(
                "b",
                r#""role":"assistant","content":[{"type":"text","text":"\ud800"},{"type":"toolCall"},{"type":"toolCall"},{"type":"new"}]"#,
            ),
            &message("c", r#""role":"toolResult","content":[]"#),
            // On another branch, and without a readable usage.
            r#"{"type":"message","id":"d","parentId":"a","message":{"role":"assistant","content":null,"usage":7}}"#,
            r#"{"type":"message","id":"e","parentId":"d","message":{"role":"system","content":""}}"#,
            r#"{"type":"message","id":"f","parentId":"e","message":{"role":"bashExecution","command":"ls"}}"#,
            &other("g", "usage"),
            &other("h", "compaction"),
            &other("i", "branch_summary"),
            &other("j", "from_the_future"),
        ]);
        let totals = SessionTotals {
            user_messages: 1,
            assistant_messages: 2,
            tool_calls: 2,
            tool_results: 1,
            total_messages: 6,
            tokens: TokenStats { input: 5, output: 10, cache_read: 15, cache_write: 20, total: 50 },
            cost: 1.75,
        };
        assert_eq!(*StatsCounter::default().totals(&tree), totals);
    }

    #[test]
    fn counting_goes_on_where_it_was() {
        let mut tree = tree(&["a -"]);
        let mut counter = StatsCounter::default();
        assert_eq!(counter.totals(&tree).user_messages, 1);
        assert_eq!(counter.totals(&tree).user_messages, 1);
        tree.push(entry("b a", 1));
        let context = Context::new(&tree);
        let stats = counter.stats(&tree, &context, Some(Path::new("/f")), Some(4));
        assert_eq!((stats.user_messages, stats.session_file.as_deref()), (2, Some("/f")));
        assert_eq!(stats.context_usage.unwrap().percent, Some(50.0));
        assert_eq!(counter.stats(&tree, &context, None, None).context_usage, None);
    }
}
