//! Rules with conditions, and all of a session's compiled together.

use globset::GlobMatcher;
use regex_syntax::hir::Hir;

use crate::{
    patterns::{PatternSet, parse},
    scope::{Scope, Stream, glob, is_glob},
};

/// The most rules that are watched; those beyond are named.
const MAX_RULES: usize = 200;

/// A rule as its file has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleText {
    /// Its name.
    pub name: String,
    /// Its file, for people and the model.
    pub path: String,
    /// What the model is told.
    pub body: String,
    /// Regular expressions, and globs of files.
    pub condition: Vec<String>,
    /// Where they are looked for; empty for text and tools.
    pub scope: Vec<String>,
    /// Files that it is for: then it looks at calls about such files alone.
    pub globs: Vec<String>,
    /// The word of `interruptMode`.
    pub interrupt_mode: Option<String>,
}

/// Which matches stop the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InterruptMode {
    /// All.
    #[default]
    Always,
    /// Those in text and thinking.
    ProseOnly,
    /// Those in the arguments of tools.
    ToolOnly,
    /// None: the model is told afterwards.
    Never,
}

impl InterruptMode {
    /// The mode of that word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Some(match word {
            "always" => Self::Always,
            "prose-only" => Self::ProseOnly,
            "tool-only" => Self::ToolOnly,
            "never" => Self::Never,
            _ => return None,
        })
    }

    /// Whether a match in the arguments of a tool, or elsewhere, stops the model.
    #[must_use]
    pub fn stops(self, is_tool: bool) -> bool {
        match self {
            Self::Always => true,
            Self::ProseOnly => !is_tool,
            Self::ToolOnly => is_tool,
            Self::Never => false,
        }
    }
}

/// Something of a rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// The rule.
    pub rule: String,
    /// Its file.
    pub path: String,
    /// What is wrong, in a clause that begins with what it is about.
    pub problem: String,
}

/// A rule that is watched.
#[derive(Debug)]
pub struct StreamRule {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// What the model is told.
    pub body: String,
    /// Its own mode, before that of the settings.
    pub interrupt_mode: Option<InterruptMode>,
    scopes: Vec<Scope>,
    globs: Vec<GlobMatcher>,
}

impl StreamRule {
    /// Whether it looks at text or thinking.
    pub(crate) fn sees(&self, stream: Stream) -> bool {
        // A file is known of calls alone.
        self.globs.is_empty() && self.scopes.iter().any(|scope| scope.stream() == stream)
    }

    /// Whether it looks at calls of a tool; `None` while that depends on a file which is not known yet.
    pub(crate) fn sees_call(&self, tool: &str, path: Option<&str>) -> Option<bool> {
        let of_tool = self.scopes.iter().filter_map(|scope| match scope {
            Scope::Tool { name, files } if name.as_deref().is_none_or(|name| name == tool) => Some(files),
            _ => None,
        });
        let mut depends = false;
        for files in of_tool {
            let matches = |files: &GlobMatcher| path.map(|path| files.is_match(path));
            let in_scope = files.as_ref().map_or(Some(true), matches);
            let in_globs = match self.globs.as_slice() {
                [] => Some(true),
                globs => path.map(|path| globs.iter().any(|glob| glob.is_match(path))),
            };
            match (in_scope, in_globs) {
                (Some(true), Some(true)) => return Some(true),
                (Some(false), _) | (_, Some(false)) => {}
                _ => depends = true,
            }
        }
        if depends { None } else { Some(false) }
    }
}

/// The rules that are watched.
#[derive(Debug, Default)]
pub struct StreamRules {
    rules: Vec<StreamRule>,
    pub(crate) text: Option<PatternSet>,
    pub(crate) thinking: Option<PatternSet>,
    pub(crate) tools: Option<PatternSet>,
}

impl StreamRules {
    /// Compiles rules. What cannot be used is left out and named: a condition, a scope, or all of a rule.
    #[must_use]
    pub fn new(rules: Vec<RuleText>) -> (Self, Vec<RuleProblem>) {
        let (mut compiled, mut problems) = (Vec::new(), Vec::new());
        let (mut text, mut thinking, mut tools) = (Vec::new(), Vec::new(), Vec::new());
        for rule in rules {
            let (name, path) = (rule.name.clone(), rule.path.clone());
            let mut problem = |problem: String| {
                problems.push(RuleProblem { rule: name.clone(), path: path.clone(), problem });
            };
            if compiled.len() == MAX_RULES {
                problem(format!("only {MAX_RULES} rules are watched, and this one is not"));
                continue;
            }
            let Some((rule, patterns)) = compile(rule, &mut problem) else { continue };
            let index = compiled.len();
            let of_rule = || patterns.iter().map(|pattern| (index, pattern.clone()));
            if rule.sees(Stream::Text) {
                text.extend(of_rule());
            }
            if rule.sees(Stream::Thinking) {
                thinking.extend(of_rule());
            }
            if rule.scopes.iter().any(|scope| scope.stream() == Stream::Tool) {
                tools.extend(of_rule());
            }
            compiled.push(rule);
        }
        let [text, thinking, tools] = [text, thinking, tools].map(PatternSet::new);
        (Self { rules: compiled, text, thinking, tools }, problems)
    }

    /// Whether nothing is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules; matches name them by their place.
    #[must_use]
    pub fn rules(&self) -> &[StreamRule] {
        &self.rules
    }
}

/// The rule with its regular expressions; `None` where none can be used.
fn compile(rule: RuleText, problem: &mut impl FnMut(String)) -> Option<(StreamRule, Vec<Hir>)> {
    let RuleText { name, path, body, condition, scope, globs, interrupt_mode } = rule;
    let mut scopes = Vec::new();
    for scope in scope {
        match Scope::parse(scope.trim()) {
            Ok(scope) => scopes.push(scope),
            Err(error) => problem(error),
        }
    }
    let (files, expressions): (Vec<String>, Vec<String>) =
        condition.into_iter().partition(|condition| is_glob(condition));
    for tool in ["edit", "write"] {
        for files in &files {
            match Scope::of_files(tool, files) {
                Ok(scope) => scopes.push(scope),
                Err(error) => problem(format!("the condition {files:?}: {error}")),
            }
        }
    }
    if scopes.is_empty() {
        scopes = vec![Scope::Text, Scope::Tool { name: None, files: None }];
    }
    let mut patterns = Vec::new();
    for expression in &expressions {
        match parse(expression) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => problem(format!("the condition {expression:?} is not watched: {error}")),
        }
    }
    // A glob alone is about any change of such a file.
    if expressions.is_empty() && !files.is_empty() {
        patterns.extend(parse("(?s).").ok());
    }
    let mut matchers = Vec::new();
    for text in &globs {
        match glob(text) {
            Ok(matcher) => matchers.push(matcher),
            Err(error) => problem(error),
        }
    }
    let mode = interrupt_mode.as_deref().and_then(|word| {
        let mode = InterruptMode::of(word);
        if mode.is_none() {
            problem(format!("interruptMode {word:?} is none of always, prose-only, tool-only and never"));
        }
        mode
    });
    let rule = StreamRule { name, path, body, interrupt_mode: mode, scopes, globs: matchers };
    (!patterns.is_empty()).then_some((rule, patterns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(condition: &[&str]) -> RuleText {
        let condition = condition.iter().map(|text| (*text).to_owned()).collect();
        RuleText { name: "r".into(), path: "/r.md".into(), condition, ..RuleText::default() }
    }

    fn problems(rule: RuleText) -> (usize, Vec<String>) {
        let (rules, problems) = StreamRules::new(vec![rule]);
        (rules.rules().len(), problems.into_iter().map(|it| it.problem).collect())
    }

    #[test]
    fn what_cannot_be_watched_is_named() {
        for (condition, says) in [
            (r"(?=x)y", "look-around"),
            (r"(?<!x)y", "look-around"),
            (r"(x)\1", "backreference"),
            ("(", "unclosed group"),
            ("x*", "matches nothing at all"),
            ("(?:a{1000}){1000}", "too large"),
            ("[z-a]", "range"),
        ] {
            let (count, found) = problems(rule(&[condition]));
            assert_eq!(count, 0, "{condition}");
            assert!(found[0].contains(says), "{condition}: {found:?}");
        }
        // The others of the rule still count.
        let (count, found) = problems(rule(&["(", "TODO"]));
        assert_eq!((count, found.len()), (1, 1));
        let (count, found) = problems(RuleText {
            scope: vec!["texts".into()],
            interrupt_mode: Some("sometimes".into()),
            ..rule(&["(?i)todo", "(?m)^x$", "(?s)a.b"])
        });
        assert_eq!((count, found.len()), (1, 2));
    }

    #[test]
    fn which_calls_a_rule_looks_at() {
        let compiled = |scope: &[&str], globs: &[&str], condition: &str| {
            let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let (mut rules, problems) = StreamRules::new(vec![RuleText {
                scope: list(scope),
                globs: list(globs),
                ..rule(&[condition])
            }]);
            assert_eq!(problems, []);
            rules.rules.remove(0)
        };
        let any = compiled(&[], &[], "x");
        assert!(any.sees(Stream::Text) && !any.sees(Stream::Thinking));
        assert_eq!(any.sees_call("bash", None), Some(true));
        let edits = compiled(&["tool:edit(*.rs)", "thinking"], &[], "x");
        assert!(!edits.sees(Stream::Text) && edits.sees(Stream::Thinking));
        assert_eq!(edits.sees_call("edit", None), None);
        assert_eq!(edits.sees_call("edit", Some("src/a.rs")), Some(true));
        assert_eq!(edits.sees_call("edit", Some("src/a.ts")), Some(false));
        assert_eq!(edits.sees_call("write", Some("src/a.rs")), Some(false));
        let files = compiled(&[], &[], "*.rs");
        assert_eq!((files.sees(Stream::Text), files.sees_call("write", Some("a.rs"))), (false, Some(true)));
        let globs = compiled(&[], &["*.ts"], "x");
        assert!(!globs.sees(Stream::Text));
        assert_eq!(globs.sees_call("write", Some("a.ts")), Some(true));
        assert_eq!(globs.sees_call("write", None), None);
    }
}
