//! One answer, watched while it streams.

use std::sync::Arc;

use crate::{
    arguments::ArgumentTexts,
    patterns::{PatternSet, StreamState},
    rule::StreamRules,
    scope::Stream,
};

/// Blocks of one answer that are watched; an answer has few.
const MAX_BLOCKS: usize = 512;

/// Follows one answer.
///
/// A match of an expression is known one byte after its end, or at the end of its block. Each rule is told once for each block.
#[derive(Debug)]
pub struct AnswerWatch {
    rules: Arc<StreamRules>,
    blocks: Vec<Block>,
}

/// A text, a thinking, or the arguments of a call.
#[derive(Debug)]
struct Block {
    index: usize,
    stream: Stream,
    /// `None` once it is over, or where no rule looks at it.
    state: Option<StreamState>,
    call: Option<Box<Call>>,
    /// The rules that were told, or have matched in a call whose file is not known yet.
    seen: Vec<usize>,
}

#[derive(Debug)]
struct Call {
    tool: String,
    arguments: ArgumentTexts,
    /// Whether any of the arguments has come.
    has_arguments: bool,
    /// Rules that have matched, and may not look at the call.
    waiting: Vec<usize>,
}

impl AnswerWatch {
    /// A new answer.
    #[must_use]
    pub fn new(rules: Arc<StreamRules>) -> Self {
        Self { rules, blocks: Vec::new() }
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &Arc<StreamRules> {
        &self.rules
    }

    /// More text of a block; the rules that match now, by their place.
    pub fn text(&mut self, block: usize, delta: &str) -> Vec<usize> {
        self.prose(block, Stream::Text, delta)
    }

    /// More thinking of a block.
    pub fn thinking(&mut self, block: usize, delta: &str) -> Vec<usize> {
        self.prose(block, Stream::Thinking, delta)
    }

    /// A call begins.
    pub fn call_begins(&mut self, block: usize, tool: &str) {
        if self.rules.tools.is_some()
            && let Some(block) = self.block(block, Stream::Tool)
        {
            let (arguments, tool) = (ArgumentTexts::of(tool), tool.to_owned());
            block.call = Some(Box::new(Call { tool, arguments, has_arguments: false, waiting: Vec::new() }));
        }
    }

    /// More of the JSON of a call's arguments.
    pub fn arguments(&mut self, block: usize, delta: &str) -> Vec<usize> {
        let rules = Arc::clone(&self.rules);
        let Some(patterns) = &rules.tools else { return Vec::new() };
        let Some(block) = self.blocks.iter_mut().rev().find(|known| known.index == block) else {
            return Vec::new();
        };
        block.arguments(&rules, patterns, delta)
    }

    /// A block is complete; `arguments` is the whole JSON of a call's, for providers that send it in one piece.
    pub fn ends(&mut self, block: usize, arguments: Option<&dyn Fn() -> String>) -> Vec<usize> {
        let rules = Arc::clone(&self.rules);
        let Some(block) = self.blocks.iter_mut().rev().find(|known| known.index == block) else {
            return Vec::new();
        };
        block.ends(&rules, arguments)
    }

    fn prose(&mut self, block: usize, stream: Stream, delta: &str) -> Vec<usize> {
        let rules = Arc::clone(&self.rules);
        let patterns = if stream == Stream::Text { &rules.text } else { &rules.thinking };
        let Some(patterns) = patterns else { return Vec::new() };
        let Some(block) = self.block(block, stream) else { return Vec::new() };
        let (seen, mut new) = (&mut block.seen, Vec::new());
        if let Some(state) = &mut block.state {
            state.feed(patterns, delta.as_bytes(), |rule| {
                if !seen.contains(&rule) {
                    seen.push(rule);
                    new.push(rule);
                }
            });
        }
        new
    }

    /// The block of that index, which may begin now; `None` where there are too many.
    fn block(&mut self, index: usize, stream: Stream) -> Option<&mut Block> {
        if let Some(at) = self.blocks.iter().rposition(|known| known.index == index) {
            return self.blocks.get_mut(at);
        }
        if self.blocks.len() == MAX_BLOCKS {
            return None;
        }
        let patterns = match stream {
            Stream::Text => &self.rules.text,
            Stream::Thinking => &self.rules.thinking,
            Stream::Tool => &self.rules.tools,
        };
        let state = patterns.as_ref().and_then(PatternSet::begin);
        self.blocks.push(Block { index, stream, state, call: None, seen: Vec::new() });
        self.blocks.last_mut()
    }
}

impl Block {
    fn arguments(&mut self, rules: &StreamRules, patterns: &PatternSet, delta: &str) -> Vec<usize> {
        let Self { state: Some(state), call: Some(call), seen, .. } = self else { return Vec::new() };
        let (arguments, waiting) = (&mut call.arguments, &mut call.waiting);
        call.has_arguments |= !delta.is_empty();
        let mut note = |rule| {
            if !seen.contains(&rule) {
                seen.push(rule);
                waiting.push(rule);
            }
        };
        arguments.feed(delta, |text| state.feed(patterns, text, &mut note));
        call.decided(rules, false)
    }

    fn ends(&mut self, rules: &StreamRules, arguments: Option<&dyn Fn() -> String>) -> Vec<usize> {
        let mut new = Vec::new();
        if let (Some(patterns), Some(arguments)) = (&rules.tools, arguments)
            && self.call.as_ref().is_some_and(|call| !call.has_arguments)
        {
            new = self.arguments(rules, patterns, &arguments());
        }
        let patterns = match self.stream {
            Stream::Text => &rules.text,
            Stream::Thinking => &rules.thinking,
            Stream::Tool => &rules.tools,
        };
        let (Some(patterns), Some(mut state)) = (patterns, self.state.take()) else { return new };
        let (seen, waiting) = (&mut self.seen, self.call.as_mut().map(|call| &mut call.waiting));
        let into = waiting.unwrap_or(&mut new);
        state.end(patterns, |rule| {
            if !seen.contains(&rule) {
                seen.push(rule);
                into.push(rule);
            }
        });
        if let Some(call) = &mut self.call {
            new.extend(call.decided(rules, true));
        }
        new
    }
}

impl Call {
    /// The rules that have matched and look at this call. Without `at_end`, those wait that depend on a file which may come.
    fn decided(&mut self, rules: &StreamRules, at_end: bool) -> Vec<usize> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let path = self.arguments.path();
        let mut new = Vec::new();
        self.waiting.retain(|rule| {
            match rules.rules().get(*rule).and_then(|rule| rule.sees_call(&self.tool, path)) {
                Some(true) => new.push(*rule),
                None if !at_end => return true,
                Some(false) | None => {}
            }
            false
        });
        new
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rule::RuleText;

    fn watch(rules: &[(&[&str], &[&str])]) -> AnswerWatch {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let rules = rules.iter().enumerate().map(|(at, (condition, scope))| RuleText {
            name: at.to_string(),
            condition: list(condition),
            scope: list(scope),
            ..RuleText::default()
        });
        let (rules, problems) = StreamRules::new(rules.collect());
        assert_eq!(problems, []);
        AnswerWatch::new(Arc::new(rules))
    }

    /// The rules that match a text which comes in these parts.
    fn matched(watch: &mut AnswerWatch, parts: &[&str]) -> Vec<usize> {
        let mut found: Vec<usize> = parts.iter().flat_map(|part| watch.text(0, part)).collect();
        found.extend(watch.ends(0, None));
        found
    }

    #[test]
    fn a_match_may_lie_across_deltas() {
        let rules: &[(&[&str], &[&str])] =
            &[(&[r"\.unwrap\(\)"], &[]), (&["(?i)todo"], &[]), (&["(?m)^fn "], &[]), (&["(?s)a.b"], &[])];
        assert_eq!(matched(&mut watch(rules), &["x.unw", "rap", "()"]), [0]);
        assert_eq!(matched(&mut watch(rules), &["To", "Do!"]), [1]);
        assert_eq!(matched(&mut watch(rules), &["x fn ", "\n", "fn", " y"]), [2]);
        assert_eq!(matched(&mut watch(rules), &["a\n", "b"]), [3]);
        assert_eq!(matched(&mut watch(rules), &["x.unwrap (); to do; xfn a"]), [0; 0]);
        // Once for a block, again for the next.
        let mut twice = watch(rules);
        assert_eq!(matched(&mut twice, &["todo todo", " todo"]), [1]);
        assert_eq!(twice.text(1, "todo "), [1]);
    }

    #[test]
    fn words_and_ends() {
        let rules: &[(&[&str], &[&str])] = &[(&[r"\bany\b"], &[]), (&["done$"], &[])];
        assert_eq!(matched(&mut watch(rules), &["many any"]), [0]);
        assert_eq!(matched(&mut watch(rules), &["many company"]), [0; 0]);
        assert_eq!(matched(&mut watch(rules), &["it is do", "ne"]), [1]);
        assert_eq!(matched(&mut watch(rules), &["done, or not"]), [0; 0]);
    }

    #[test]
    fn each_stream_has_its_rules() {
        let mut watch = watch(&[(&["x"], &["thinking"]), (&["x"], &["text"]), (&["x"], &["tool:bash"])]);
        assert_eq!(watch.text(0, "x y"), [1]);
        assert_eq!(watch.thinking(1, "x y"), [0]);
        watch.call_begins(2, "bash");
        assert_eq!(watch.arguments(2, r#"{"command":"x y"}"#), [2]);
        watch.call_begins(3, "read");
        assert_eq!(watch.arguments(3, r#"{"path":"x y"}"#), [0; 0]);
        assert_eq!(watch.ends(3, None), [0; 0]);
    }

    #[test]
    fn a_call_is_judged_by_its_file_wherever_that_stands() {
        let rules: &[(&[&str], &[&str])] = &[(&[r"unwrap\(\)"], &["tool:write(*.rs)"])];
        let mut first = watch(rules);
        first.call_begins(0, "write");
        assert_eq!(first.arguments(0, r#"{"path":"a.rs","content":"x.unwrap()"#), [0; 0], "one byte later");
        assert_eq!(first.arguments(0, ";"), [0]);
        let mut last = watch(rules);
        last.call_begins(0, "write");
        assert_eq!(last.arguments(0, r#"{"content":"x.unwrap();","path":"a.r"#), [0; 0]);
        assert_eq!(last.arguments(0, r#"s""#), [0]);
        let mut other = watch(rules);
        other.call_begins(0, "write");
        assert_eq!(other.arguments(0, r#"{"content":"x.unwrap();","path":"a.ts"}"#), [0; 0]);
        assert_eq!(other.ends(0, None), [0; 0]);
        // A provider may send all of a call at once.
        let mut whole = watch(rules);
        whole.call_begins(0, "write");
        assert_eq!(whole.ends(0, Some(&|| r#"{"content":"x.unwrap()","path":"a.rs"}"#.to_owned())), [0]);
    }

    proptest! {
        /// However a text is cut into deltas, the rules that match are those whose expressions do.
        #[test]
        fn matches_are_those_of_the_regex_crate(
            text in "[ab \\n\u{e9}]{0,40}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            const PATTERNS: [&str; 8] = ["ab", "a+b", "(?m)^a", "(?m)b$", "^a", "b$", "(?s)a.a", "a[^b]b|bb"];
            let rules: Vec<(&[&str], &[&str])> = PATTERNS.iter().map(|pattern| (std::slice::from_ref(pattern), &[][..])).collect();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).filter(|at| text.is_char_boundary(*at)).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let parts: Vec<&str> = at.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
            let mut found = matched(&mut watch(&rules), &parts);
            found.sort_unstable();
            let expected: Vec<usize> = (0..PATTERNS.len())
                .filter(|at| regex::Regex::new(PATTERNS[*at]).unwrap().is_match(&text))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
