//! Rules of all sources, compiled, and what they and the presets say of tools and files.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use agentd_protocol::{
    plain_path::without_dots,
    settings::{PermissionAction, PermissionPreset, PermissionRule},
};

use crate::{
    paths::real,
    rule::{CompiledRule, FileAccess},
};

/// Where rules come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSource {
    /// The user's settings.
    User,
    /// `.agentd/policy.json` of a trusted project, which can only make things stricter: what it allows does not count.
    Project,
    /// Flags of the command line, and commands of clients.
    Flags,
    /// The session: answers to earlier questions.
    Session,
}

impl RuleSource {
    /// The word on the wire and in entries.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Flags => "flags",
            Self::Session => "session",
        }
    }
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "the setting permissions.rules",
            Self::Project => ".agentd/policy.json",
            Self::Flags => "the rules that were given",
            Self::Session => "the rules of the session",
        })
    }
}

/// Rules of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLayer {
    /// The source.
    pub source: RuleSource,
    /// The rules, in their order.
    pub rules: Vec<PermissionRule>,
}

/// What a policy is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyOptions {
    /// The verdict where no rule matches.
    pub preset: PermissionPreset,
    /// A preset of the project: the stricter of both verdicts counts.
    pub project_preset: Option<PermissionPreset>,
    /// The rules.
    pub layers: Vec<RuleLayer>,
    /// The session's folder, absolute.
    pub cwd: PathBuf,
    /// Further folders of the workspace, absolute: the preset `workspace` takes them as it takes `cwd`.
    pub folders: Vec<PathBuf>,
    /// The home directory, absolute.
    pub home: PathBuf,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}, rule {number}: {field} {problem}", source_name = .origin)]
pub struct PolicyError {
    /// Where the rule comes from.
    pub origin: RuleSource,
    /// Its place among the rules of its source, from 1.
    pub number: usize,
    /// The field at fault.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// The rule that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidingRule {
    /// Where it comes from.
    pub source: RuleSource,
    /// Its place among the rules of its source, from 0.
    pub index: usize,
    /// The rule.
    pub rule: PermissionRule,
}

/// A rule with its source, and its place there.
pub(crate) type CompiledRow = (RuleSource, usize, CompiledRule);

#[derive(Debug)]
pub(crate) struct Compiled {
    options: PolicyOptions,
    rules: Vec<CompiledRow>,
    /// The folders of the workspace, as they are called and with links resolved.
    workspace: Vec<PathBuf>,
    /// Whether it is what plan mode says: as the preset `read-only`, with commands that only look.
    is_planning: bool,
}

/// A verdict with its reason; the strictest of several counts.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) action: PermissionAction,
    pub(crate) rule: Option<DecidingRule>,
    pub(crate) reason: String,
}

impl Verdict {
    pub(crate) fn new(action: PermissionAction, reason: impl Into<String>) -> Self {
        Self { action, rule: None, reason: reason.into() }
    }

    /// The stricter of both, the first of two that are as strict.
    pub(crate) fn and(self, other: Self) -> Self {
        if other.action > self.action { other } else { self }
    }
}

impl Compiled {
    /// Compiles the rules. Looks up where the folders of the workspace lead.
    pub(crate) fn new(options: PolicyOptions) -> Result<Self, PolicyError> {
        let mut rules = Vec::new();
        for layer in &options.layers {
            for (index, rule) in layer.rules.iter().enumerate() {
                let compiled =
                    CompiledRule::new(rule, &options.cwd, &options.home).map_err(|(field, problem)| {
                        PolicyError { origin: layer.source, number: index + 1, field, problem }
                    })?;
                // A project makes things stricter only.
                if layer.source != RuleSource::Project || rule.action != PermissionAction::Allow {
                    rules.push((layer.source, index, compiled));
                }
            }
        }
        let mut workspace = Vec::new();
        for folder in std::iter::once(&options.cwd).chain(&options.folders) {
            workspace.push(without_dots(folder));
            workspace.extend(real(folder).filter(|real| real != folder));
        }
        Ok(Self { options, rules, workspace, is_planning: false })
    }

    /// What plan mode says: rules and presets of the session are asked besides it.
    pub(crate) fn planning(cwd: &Path, folders: &[PathBuf], home: &Path) -> Result<Self, PolicyError> {
        let options = PolicyOptions {
            preset: PermissionPreset::ReadOnly,
            project_preset: None,
            layers: Vec::new(),
            cwd: cwd.to_owned(),
            folders: folders.to_vec(),
            home: home.to_owned(),
        };
        Ok(Self { is_planning: true, ..Self::new(options)? })
    }

    /// Whether commands that only look run under the preset `read-only`, too.
    pub(crate) fn lets_look(&self) -> bool {
        self.is_planning
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &CompiledRow> {
        self.rules.iter()
    }

    pub(crate) fn options(&self) -> &PolicyOptions {
        &self.options
    }

    /// The verdict of the presets, of which `of` gives one.
    pub(crate) fn preset(&self, of: impl Fn(PermissionPreset) -> PermissionAction, what: &str) -> Verdict {
        let presets = std::iter::once(self.options.preset).chain(self.options.project_preset);
        let (action, preset) = presets
            .map(|preset| (of(preset), preset))
            .reduce(|first, second| if second.0 > first.0 { second } else { first })
            .unwrap_or((PermissionAction::Ask, PermissionPreset::Ask));
        let verb = match action {
            PermissionAction::Allow => "allows",
            PermissionAction::Ask => "asks about",
            PermissionAction::Deny => "refuses",
        };
        if self.is_planning {
            return Verdict::new(action, format!("plan mode {verb} {what}"));
        }
        Verdict::new(action, format!("the preset {} {verb} {what}", preset.as_str()))
    }

    /// The strictest of the rules for which `matches` holds.
    pub(crate) fn strictest<'a>(&self, rules: impl Iterator<Item = &'a CompiledRow>) -> Option<Verdict> {
        let rules: Vec<&CompiledRow> = rules.collect();
        // An answer that holds for the session is an answer to the rule that asked.
        let is_answered = rules.iter().any(|(source, _, rule)| {
            *source == RuleSource::Session && rule.action() == PermissionAction::Allow
        });
        let counts = |(source, _, rule): &&&CompiledRow| {
            !is_answered || *source == RuleSource::Project || rule.action() != PermissionAction::Ask
        };
        rules.iter().filter(counts).map(|row| self.by_rule(row)).reduce(Verdict::and)
    }

    /// The verdict of a rule.
    pub(crate) fn by_rule(&self, (source, index, rule): &CompiledRow) -> Verdict {
        let deciding = DecidingRule { source: *source, index: *index, rule: rule.rule.clone() };
        let verb = match rule.action() {
            PermissionAction::Allow => "allows it",
            PermissionAction::Ask => "asks about it",
            PermissionAction::Deny => "refuses it",
        };
        let mut reason = format!("rule {} of {source} {verb}", index + 1);
        if let Some(given) = &rule.rule.reason {
            reason.push_str(": ");
            reason.push_str(given);
        }
        Verdict { action: rule.action(), rule: Some(deciding), reason }
    }

    /// A call that neither reads nor writes a file that is known, nor runs a command.
    pub(crate) fn call(&self, tool: &str) -> Verdict {
        let rules = self.rules.iter().filter(|(.., rule)| rule.is_for(tool, None));
        self.strictest(rules).unwrap_or_else(|| self.preset(exec_preset, &format!("the tool {tool}")))
    }

    /// Pages of a host; `None` for a call that names none, as a search does. Presets judge it like any other tool, since a URL can carry
    /// something away; plan mode lets the model look.
    pub(crate) fn web(&self, tool: &str, host: Option<&str>) -> Verdict {
        let rules = self.rules.iter().filter(|(.., rule)| rule.is_for_host(tool, host));
        let of = |preset| if self.is_planning { PermissionAction::Allow } else { exec_preset(preset) };
        self.strictest(rules).unwrap_or_else(|| match host {
            Some(host) => self.preset(of, &format!("reading {host}")),
            None => self.preset(of, &format!("the tool {tool}")),
        })
    }

    /// A call that changes what the session knows of itself, and nothing else: only a rule of the tool keeps it from running.
    pub(crate) fn own_notes(&self, tool: &str) -> Verdict {
        let rules = self.rules.iter().filter(|(.., rule)| rule.is_for(tool, None));
        self.strictest(rules).unwrap_or_else(|| {
            self.preset(|_| PermissionAction::Allow, "what changes only what the session knows of itself")
        })
    }

    /// A call that only reads, nobody knows what. The rules of the tool count, and those about reading that make something stricter: no rule
    /// about files allows a tool that is not named. Where files are kept from being read, it is judged like any other tool.
    pub(crate) fn trusted_read(&self, tool: &str) -> Verdict {
        let is_about_it = |rule: &CompiledRule| {
            rule.is_for(tool, None)
                || (rule.action() != PermissionAction::Allow && rule.is_for_all_files(FileAccess::Read))
        };
        let verdict = self.strictest(self.rules.iter().filter(|(.., rule)| is_about_it(rule)));
        verdict.unwrap_or_else(|| {
            if self.hides_files() {
                let what = format!("the tool {tool}, since rules keep files from being read");
                return self.preset(exec_preset, &what);
            }
            self.preset(|_| PermissionAction::Allow, "reading")
        })
    }

    /// Reading or writing a path, given as an absolute one, by a tool.
    pub(crate) fn file(&self, tool: &str, path: &Path, access: FileAccess) -> Verdict {
        let cleaned = without_dots(path);
        let Some(led_to) = real(path) else {
            return Verdict::new(PermissionAction::Ask, format!("{} cannot be looked at", path.display()))
                .and(self.preset(exec_preset, "it"));
        };
        let has = |rule: &CompiledRule| match rule.path_pattern() {
            // What is allowed is allowed wherever it leads; what is refused, however it is called.
            Some(pattern) if rule.action() == PermissionAction::Allow => {
                pattern.has(&cleaned) && pattern.has(&led_to)
            }
            Some(pattern) => pattern.has(&cleaned) || pattern.has(&led_to),
            None => rule.is_for_all_files(access) || rule.is_for(tool, Some(access)),
        };
        let rules = self.rules.iter().filter(|(.., rule)| rule_is_of_files(rule, tool, access) && has(rule));
        if let Some(verdict) = self.strictest(rules) {
            return verdict;
        }
        let what = match access {
            FileAccess::Read => "reading files".to_owned(),
            FileAccess::Write => format!("writing {}", path.display()),
        };
        let is_inside = self.is_inside(&cleaned) && self.is_inside(&led_to);
        self.preset(
            |preset| match (preset, access) {
                (PermissionPreset::Full, _) | (_, FileAccess::Read) => PermissionAction::Allow,
                (PermissionPreset::Workspace, _) if is_inside => PermissionAction::Allow,
                (PermissionPreset::Workspace | PermissionPreset::Ask, _) => PermissionAction::Ask,
                (PermissionPreset::ReadOnly, _) => PermissionAction::Deny,
            },
            &what,
        )
    }

    /// The folders of the workspace, as they are called and with links resolved.
    pub(crate) fn workspace(&self) -> &[PathBuf] {
        &self.workspace
    }

    /// Whether a path is in the workspace, and no file that decides what agents and git run there.
    fn is_inside(&self, path: &Path) -> bool {
        self.workspace.iter().any(|folder| {
            path.strip_prefix(folder).is_ok_and(|below| {
                let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy().to_lowercase()).collect();
                let is_guarded =
                    parts.iter().any(|part| matches!(part.as_str(), ".agentd" | ".pi" | ".claude" | ".git"));
                // A folder becomes a repository, with a configuration that names programs, by a file of this name.
                let is_head = parts.last().is_some_and(|last| last == "head");
                !parts.is_empty() && !is_guarded && !is_head
            })
        })
    }

    /// What looks into a folder may meet files that a rule refuses.
    pub(crate) fn deep_read(&self, folder: &Path) -> Verdict {
        let (cleaned, led_to) = (without_dots(folder), real(folder).unwrap_or_default());
        let may_meet = self.rules.iter().find(|(.., rule)| {
            rule.action() != PermissionAction::Allow
                && rule
                    .path(FileAccess::Read)
                    .is_some_and(|pattern| pattern.may_be_below(&cleaned) || pattern.may_be_below(&led_to))
        });
        match may_meet {
            None => Verdict::new(PermissionAction::Allow, String::new()),
            Some(row) => {
                let pattern = row.2.rule.path.as_deref().unwrap_or_default();
                let mut verdict = self.by_rule(row);
                verdict.action = PermissionAction::Ask;
                verdict.reason =
                    format!("{} may hold what a rule keeps from being read ({pattern})", folder.display());
                verdict
            }
        }
    }

    /// Whether a rule keeps files from being read.
    pub(crate) fn hides_files(&self) -> bool {
        self.rules.iter().any(|(.., rule)| {
            rule.action() != PermissionAction::Allow && rule.path(FileAccess::Read).is_some()
        })
    }

    /// Whether a rule keeps files from being written.
    pub(crate) fn keeps_files(&self) -> bool {
        self.rules.iter().any(|(.., rule)| {
            rule.action() != PermissionAction::Allow && rule.path(FileAccess::Write).is_some()
        })
    }
}

fn rule_is_of_files(rule: &CompiledRule, tool: &str, access: FileAccess) -> bool {
    // Redirections of commands are reads and writes, but no rule for all calls of `bash` is about files.
    if tool == "bash" {
        rule.path(access).is_some() || rule.is_for_all_files(access)
    } else {
        rule.is_for(tool, Some(access))
    }
}

/// The verdict of a preset about what may do anything.
pub(crate) fn exec_preset(preset: PermissionPreset) -> PermissionAction {
    match preset {
        PermissionPreset::Full => PermissionAction::Allow,
        PermissionPreset::Workspace | PermissionPreset::Ask => PermissionAction::Ask,
        PermissionPreset::ReadOnly => PermissionAction::Deny,
    }
}
