//! Rules, compiled, and whether they match.

use std::path::Path;

use agentd_protocol::{
    remote_hosts::SSH_TOOL,
    settings::{PermissionAction, PermissionRule, matches_pattern},
    web::WEB_FETCH_TOOL,
};
use globset::{GlobBuilder, GlobMatcher};

use crate::{
    paths::PathPattern,
    shell::{self, Folders, Word, WordValue},
};

/// The class of a tool, for rules and presets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    Read,
    Write,
}

/// Whether a rule matches a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    No,
    /// It depends on words that are only known when the command runs.
    Maybe,
    Yes,
}

/// A rule, compiled.
#[derive(Debug, Clone)]
pub(crate) struct CompiledRule {
    pub(crate) rule: PermissionRule,
    command: Option<Vec<WordPattern>>,
    /// Whether `command` is about commands on other hosts: its first word is the host.
    is_remote: bool,
    path: Option<PathPattern>,
}

#[derive(Debug, Clone)]
enum WordPattern {
    /// Any further words, none too; only at the end.
    Rest,
    /// Any one word.
    Any,
    Literal(String),
    Glob(GlobMatcher),
}

impl CompiledRule {
    /// Compiles a rule.
    ///
    /// # Errors
    /// The field and what is wrong with it.
    pub(crate) fn new(
        rule: &PermissionRule,
        cwd: &Path,
        home: &Path,
    ) -> Result<Self, (&'static str, String)> {
        if rule.tool.trim().is_empty() {
            return Err(("tool", "must name a tool, or have * for any part of its name".to_owned()));
        }
        let command = match &rule.command {
            Some(command) if !matches_pattern(&rule.tool, "bash") && rule.tool != SSH_TOOL => {
                return Err((
                    "command",
                    format!("is for the tools bash and ssh, which {:?} is not: {command:?}", rule.tool),
                ));
            }
            Some(command) => Some(words_of_pattern(command, home).map_err(|error| ("command", error))?),
            None => None,
        };
        let is_of_files = ["read", "write", "edit", "grep", "find", "ls"]
            .into_iter()
            .any(|tool| matches_pattern(&rule.tool, tool));
        let path = match &rule.path {
            Some(path) if !is_of_files => {
                return Err((
                    "path",
                    format!("is for read and write, which {:?} is not: {path:?}", rule.tool),
                ));
            }
            Some(_) if command.is_some() => {
                return Err(("path", "cannot stand beside command: write two rules".to_owned()));
            }
            Some(path) => Some(
                PathPattern::new(path, cwd, home).map_err(|error| ("path", format!("{error}: {path:?}")))?,
            ),
            None => None,
        };
        match &rule.domain {
            Some(domain) if !matches_pattern(&rule.tool, WEB_FETCH_TOOL) => {
                return Err((
                    "domain",
                    format!("is for the tool web_fetch, which {:?} is not: {domain:?}", rule.tool),
                ));
            }
            Some(domain) if command.is_some() || path.is_some() => {
                return Err((
                    "domain",
                    format!("cannot stand beside command and path: write two rules: {domain:?}"),
                ));
            }
            Some(domain) if !is_host(domain) => {
                return Err((
                    "domain",
                    format!("must be a host such as example.org, without a scheme or a path: {domain:?}"),
                ));
            }
            _ => {}
        }
        // A rule for several tools is about commands of this machine.
        Ok(Self { rule: rule.clone(), command, path, is_remote: rule.tool == SSH_TOOL })
    }

    pub(crate) fn action(&self) -> PermissionAction {
        self.rule.action
    }

    /// Whether the rule is about a tool that is no `bash`, with or without a path.
    pub(crate) fn is_for(&self, tool: &str, access: Option<FileAccess>) -> bool {
        let class = match access {
            Some(FileAccess::Read) => "read",
            Some(FileAccess::Write) => "write",
            None => tool,
        };
        self.command.is_none()
            && self.rule.domain.is_none()
            && (matches_pattern(&self.rule.tool, tool) || matches_pattern(&self.rule.tool, class))
            && (self.path.is_none() || access.is_some())
    }

    /// The paths that the rule is about, whatever its tool is; `None` for all.
    pub(crate) fn path_pattern(&self) -> Option<&PathPattern> {
        self.path.as_ref()
    }

    /// Whether the rule is about reading or writing files of a path.
    pub(crate) fn path(&self, access: FileAccess) -> Option<&PathPattern> {
        let tool = match access {
            FileAccess::Read => "read",
            FileAccess::Write => "write",
        };
        self.path.as_ref().filter(|_| matches_pattern(&self.rule.tool, tool))
    }

    /// Whether the rule is about pages of a host, by this tool; `None` for a call that names no host, which every rule of the tool that does
    /// not allow means.
    pub(crate) fn is_for_host(&self, tool: &str, host: Option<&str>) -> bool {
        if self.command.is_some() || self.path.is_some() || !matches_pattern(&self.rule.tool, tool) {
            return false;
        }
        match (&self.rule.domain, host) {
            (None, _) => true,
            (Some(_), None) => self.action() != PermissionAction::Allow,
            (Some(domain), Some(host)) => has_host(domain, host),
        }
    }

    /// Whether the rule is about reading or writing any file.
    pub(crate) fn is_for_all_files(&self, access: FileAccess) -> bool {
        let tool = match access {
            FileAccess::Read => "read",
            FileAccess::Write => "write",
        };
        let is_narrow = self.path.is_some() || self.command.is_some() || self.rule.domain.is_some();
        !is_narrow && matches_pattern(&self.rule.tool, tool)
    }

    /// Whether the rule is about every command of `tool`, `bash` or `ssh`.
    pub(crate) fn is_for_all_commands(&self, tool: &str) -> bool {
        let is_narrow = self.path.is_some() || self.command.is_some() || self.rule.domain.is_some();
        !is_narrow && matches_pattern(&self.rule.tool, tool)
    }

    /// How many words the pattern of commands names before its last `*`.
    pub(crate) fn named_words(&self) -> usize {
        let Some(pattern) = &self.command else { return 0 };
        let named = pattern.iter().filter(|word| !matches!(word, WordPattern::Rest)).count();
        named.saturating_sub(usize::from(self.is_remote))
    }

    /// Whether the pattern of commands matches these words, on `host` if that is another one. A rule that does not allow also means the
    /// program by its path.
    pub(crate) fn matches(&self, host: Option<&str>, words: &[Word]) -> Match {
        let Some(pattern) = &self.command else { return Match::No };
        let pattern = match (host, self.is_remote, &pattern[..]) {
            (None, false, pattern) => pattern,
            (Some(_), true, [WordPattern::Rest]) => return Match::Yes,
            (Some(host), true, [first, rest @ ..]) if first.matches(host) => rest,
            _ => return Match::No,
        };
        let is_strict = self.action() != PermissionAction::Allow;
        let mut found = Match::Yes;
        let mut words = words.iter().enumerate();
        for part in pattern {
            if matches!(part, WordPattern::Rest) {
                return found;
            }
            let Some((index, word)) = words.next() else { return Match::No };
            match &word.value {
                WordValue::Static(text) => {
                    let name = (index == 0 && is_strict).then(|| text.rsplit('/').next().unwrap_or(text));
                    if !part.matches(text) && !name.is_some_and(|name| part.matches(name)) {
                        return Match::No;
                    }
                }
                // Any of the words that follow may come from it.
                WordValue::Dynamic => return Match::Maybe,
                WordValue::One | WordValue::Pipe | WordValue::Glob { .. } => {
                    if !matches!(part, WordPattern::Any) {
                        found = Match::Maybe;
                    }
                    if matches!(word.value, WordValue::Glob { .. }) {
                        return Match::Maybe;
                    }
                }
            }
        }
        match words.next() {
            None => found,
            Some((_, word)) if word.value == WordValue::Dynamic => Match::Maybe,
            Some(_) => Match::No,
        }
    }
}

impl WordPattern {
    fn matches(&self, word: &str) -> bool {
        match self {
            Self::Rest | Self::Any => true,
            Self::Literal(text) => text == word,
            Self::Glob(glob) => glob.is_match(word),
        }
    }
}

/// Whether a text can be the host of a rule.
fn is_host(domain: &str) -> bool {
    let is_part =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '*' | '?' | ':');
    !domain.is_empty() && domain.chars().all(is_part)
}

/// Whether a host is the one of a rule, or below it.
fn has_host(domain: &str, host: &str) -> bool {
    let domain = domain.trim_end_matches('.').to_lowercase();
    matches_pattern(&domain, host)
        || host.char_indices().any(|(at, letter)| letter == '.' && matches_pattern(&domain, &host[at + 1..]))
}

/// The words of a pattern, split as a shell does: quotes keep a word together, and take `*` its meaning.
fn words_of_pattern(pattern: &str, home: &Path) -> Result<Vec<WordPattern>, String> {
    let home = home.to_string_lossy();
    let script = shell::parse(pattern, Folders::Unknown, &home);
    let [command] = script.commands.as_slice() else {
        return Err(format!("must be the words of one simple command: {pattern:?}"));
    };
    let is_plain =
        command.redirections.is_empty() && command.assignments.is_empty() && script.obscure.is_none();
    if !is_plain || command.words.is_empty() {
        return Err(format!("must be the words of one simple command: {pattern:?}"));
    }
    let last = command.words.len() - 1;
    command.words.iter().enumerate().map(|(index, word)| word_pattern(word, index == last)).collect()
}

fn word_pattern(word: &Word, is_last: bool) -> Result<WordPattern, String> {
    match (&word.value, word.source.as_str()) {
        (WordValue::Static(text), _) => Ok(WordPattern::Literal(text.clone())),
        (_, "*") if is_last => Ok(WordPattern::Rest),
        (_, "*") => Ok(WordPattern::Any),
        (_, source) if source.contains(['$', '`', '"', '\'']) => {
            Err(format!("must have no expansions, and no quotes within a glob: {source}"))
        }
        (_, source) => {
            let glob = GlobBuilder::new(source).literal_separator(false).backslash_escape(true).build();
            glob.map(|glob| WordPattern::Glob(glob.compile_matcher())).map_err(|error| error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(command: &str, action: PermissionAction) -> CompiledRule {
        let rule = PermissionRule {
            tool: "bash".to_owned(),
            command: Some(command.to_owned()),
            path: None,
            domain: None,
            action,
            reason: None,
        };
        CompiledRule::new(&rule, Path::new("/w"), Path::new("/h")).unwrap()
    }

    fn matches(pattern: &str, words: &[&str]) -> bool {
        let words: Vec<Word> = words.iter().map(|word| Word::of(word)).collect();
        rule(pattern, PermissionAction::Allow).matches(None, &words) == Match::Yes
    }

    #[test]
    fn words_are_matched_one_by_one() {
        assert!(matches("git status *", &["git", "status"]));
        assert!(matches("git status *", &["git", "status", "-s", "a"]));
        assert!(
            !matches("git status *", &["git", "stash"]) && !matches("git status", &["git", "status", "-s"])
        );
        assert!(
            matches("git * --list", &["git", "tag", "--list"])
                && !matches("git * --list", &["git", "--list"])
        );
        assert!(matches("npm run test:*", &["npm", "run", "test:unit"]));
        assert!(!matches("npm run test:*", &["npm", "run", "test:unit", "x"]), "a glob is one word");
        assert!(matches("echo 'a b'", &["echo", "a b"]) && matches("find '*'", &["find", "*"]));
        assert!(!matches("find '*'", &["find", "x"]), "quoted");
        assert!(matches("rm x.{a,b}", &["rm", "x.a"]));
        assert!(!matches("rm *", &["/tmp/rm", "x"]), "another program");
    }

    #[test]
    fn rules_that_refuse_know_paths_and_doubt() {
        let deny = rule("git push *", PermissionAction::Deny);
        assert_eq!(deny.matches(None, &[Word::of("/usr/bin/git"), Word::of("push")]), Match::Yes);
        assert_eq!(deny.matches(None, &[Word::of("git"), Word::dynamic("$X")]), Match::Maybe);
        assert_eq!(deny.matches(None, &[Word::of("git"), Word::of("log"), Word::dynamic("$X")]), Match::No);
    }

    #[test]
    fn faults_name_the_field() {
        let fault = |tool: &str, command: Option<&str>, path: Option<&str>| {
            let rule = PermissionRule {
                tool: tool.to_owned(),
                command: command.map(str::to_owned),
                path: path.map(str::to_owned),
                domain: None,
                action: PermissionAction::Deny,
                reason: None,
            };
            CompiledRule::new(&rule, Path::new("/w"), Path::new("/h")).map(|_| ()).unwrap_err().0
        };
        assert_eq!(fault("", None, None), "tool");
        assert_eq!(fault("read", Some("ls"), None), "command");
        assert_eq!(fault("bash", Some("ls; rm"), None), "command");
        assert_eq!(fault("bash", Some("ls $X"), None), "command");
        assert_eq!(fault("bash", None, Some("./x")), "path");
        assert_eq!(fault("write", None, Some("x")), "path");
        assert_eq!(fault("write", None, Some("./[")), "path");
    }
}
