//! Counts the tokens of a growing context: asked at every turn, it costs only the messages that the turn added.

use agentd_protocol::{Json, message::Message};

use crate::{
    Context, EntryKind, Role, SessionTree,
    estimate::{CollapsedSum, reported},
    estimate_tokens,
};

/// Estimates one session's context repeatedly, looking at each message once.
///
/// The last answer's report counts, and later messages are estimated. A report from before the last compaction or edit does not
/// describe the present context: without a later report all of it is estimated, with its system messages taken together.
#[derive(Debug, Clone, Default)]
pub struct ContextMeter {
    /// The number of the context's rebuild that the counts belong to; `None` before the first look.
    remakes: Option<u64>,
    /// The number of messages in `reported` and `since`.
    seen: usize,
    /// The context size that the last answer reported.
    reported: Option<u64>,
    /// Estimated tokens after that answer.
    since: u64,
    /// The number of messages in `all`.
    summed: usize,
    /// The estimate of everything. Made only where nothing was reported.
    all: CollapsedSum,
}

impl ContextMeter {
    /// The tokens of `context`, which must be the one of the calls before, grown or not, and that of `tree`.
    pub fn tokens(&mut self, tree: &SessionTree, context: &Context) -> u64 {
        let messages = context.messages();
        if self.remakes != Some(context.remakes()) {
            *self = Self { remakes: Some(context.remakes()), ..Self::default() };
            self.seen = first_usable(tree, context).unwrap_or(messages.len());
        }
        for message in &messages[self.seen..] {
            self.see(message);
        }
        self.seen = messages.len();
        if let Some(reported) = self.reported {
            return reported + self.since;
        }
        messages[self.summed..].iter().for_each(|message| self.all.add(message));
        self.summed = messages.len();
        self.all.tokens()
    }

    fn see(&mut self, message: &Json<Message>) {
        match reported(message) {
            Some(tokens) => (self.reported, self.since) = (Some(tokens), 0),
            None => self.since += message.get().map_or(0, estimate_tokens),
        }
    }
}

/// The place of the last answer whose report still counts.
fn first_usable(tree: &SessionTree, context: &Context) -> Option<usize> {
    let kind = |at: &u32| tree.entry(*at).kind();
    let upwards = tree.upwards(tree.leaf_index());
    let current =
        upwards.take_while(|at| !matches!(kind(at), EntryKind::Compaction | EntryKind::ContextEdit));
    let mut answers = current.filter(|at| kind(at) == EntryKind::Message(Role::Assistant));
    let answer = answers.find(|at| tree.entry(*at).message().and_then(reported).is_some())?;
    context.sources().iter().rposition(|source| *source == answer)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{entry, tree};

    fn answer(id: &str, parent: &str, tokens: u64) -> String {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{{"role":"assistant","content":[{{"type":"text","text":"1234"}}],"stopReason":"stop","usage":{{"totalTokens":{tokens}}}}}}}"#
        )
    }

    const SYSTEM: &str = r#""message":{"role":"system","content":"","sections":{"x":"12345678"}}"#;

    fn compaction(id: &str, parent: &str, kept: &str) -> String {
        format!(
            r#"{{"type":"compaction","id":"{id}","parentId":"{parent}","summary":"12345","firstKeptEntryId":"{kept}"}}"#
        )
    }

    fn edit(id: &str, parent: &str, target: &str) -> String {
        format!(
            r#"{{"type":"context_edit","id":"{id}","parentId":"{parent}","targetId":"{target}","replacement":null}}"#
        )
    }

    #[test]
    fn a_report_counts_until_something_rewrites_the_context() {
        let mut tree = tree(&["aaaaa -"]);
        let (mut context, mut meter) = (Context::new(&tree), ContextMeter::default());
        let mut next = |line: &str| {
            tree.push(entry(line, 1));
            context.follow(&tree);
            meter.tokens(&tree, &context)
        };
        assert_eq!(next(&answer("b", "aaaaa", 100)), 100);
        assert_eq!(next("ccccc b"), 102);
        assert_eq!(next(&answer("d", "ccccc", 0)), 103);
        assert_eq!(next(&edit("e", "d", "ccccc")), 4);
        assert_eq!(next(&answer("f", "e", 50)), 50);
        // The summary, and what is kept from `f` on.
        assert_eq!(next(&compaction("g", "f", "f")), 3);
        assert_eq!(next("h g"), 4);
        assert_eq!(next(&answer("i", "h", 20)), 20);
    }

    /// Entries of all kinds, each after the one before.
    fn lines() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec((0..6_u8, 0..3_u64, any::<prop::sample::Index>()), 1..30).prop_map(|kinds| {
            let mut lines: Vec<String> = Vec::new();
            for (at, (kind, tokens, target)) in kinds.into_iter().enumerate() {
                let (id, parent) =
                    (format!("n{at}"), at.checked_sub(1).map_or("-".into(), |at| format!("n{at}")));
                let target = format!("n{}", target.index(at.max(1)));
                lines.push(match kind {
                    _ if at == 0 => format!("{id} -"),
                    0 => compaction(&id, &parent, &target),
                    1 => edit(&id, &parent, &target),
                    2 | 3 => answer(&id, &parent, tokens * 10),
                    4 => format!(r#"{{"type":"message","id":"{id}","parentId":"{parent}",{SYSTEM}}}"#),
                    _ => format!("{id} {parent}"),
                });
            }
            lines
        })
    }

    proptest! {
        /// Asked after every entry, or only at the end: the same number.
        #[test]
        fn growing_is_as_good_as_counting_anew(lines in lines()) {
            let mut tree = tree(&[]);
            let (mut context, mut meter) = (Context::new(&tree), ContextMeter::default());
            for line in lines {
                tree.push(entry(&line, 1));
                context.follow(&tree);
                let anew = ContextMeter::default().tokens(&tree, &Context::new(&tree));
                prop_assert_eq!(meter.tokens(&tree, &context), anew);
            }
        }
    }
}
