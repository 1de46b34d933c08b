//! The policy of a session, and the verdict for a call.

use std::{path::Path, sync::Arc};

use agentd_protocol::settings::{PermissionAction, PermissionPreset, PermissionRule};

use crate::{
    command,
    compiled::{Compiled, DecidingRule, PolicyError, PolicyOptions, RuleLayer, RuleSource, Verdict},
    parsed::ParsedCommand,
    rule::FileAccess,
    shell::{self, Folders},
    suggest,
};

/// What a call does, as far as a policy can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// It reads a file or folder, given as an absolute path.
    Read {
        /// The path.
        path: &'a Path,
        /// Whether it looks into the folders below.
        is_deep: bool,
    },
    /// It writes a file, given as an absolute path.
    Write {
        /// The path.
        path: &'a Path,
    },
    /// It runs a shell command.
    Command {
        /// The text.
        text: &'a str,
        /// The folder that it runs in, absolute.
        folder: &'a Path,
        /// Variables that the call sets for it.
        variables: &'a [String],
    },
    /// It changes nothing, as the tool's provider says and the user has said to believe. Nobody knows what it reads.
    TrustedRead,
    /// It changes nothing but what the session knows of itself, and reads nothing else.
    OwnNotes,
    /// Anything else.
    Other,
}

/// The verdict about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDecision {
    /// The verdict.
    pub action: PermissionAction,
    /// The rule that decided; absent when the preset did.
    pub rule: Option<DecidingRule>,
    /// Why, in a clause for users and models.
    pub reason: String,
    /// The simple commands of a shell command, each before those that it starts.
    pub parsed: Vec<ParsedCommand>,
    /// A rule that would allow this and what is like it; absent where none is safe.
    pub suggestion: Option<PermissionRule>,
}

/// The policy of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Policy(Arc<Compiled>);

impl Policy {
    /// Compiles a policy. Looks up where the folders of the workspace lead.
    ///
    /// # Errors
    /// The first rule that cannot be used.
    pub fn new(options: PolicyOptions) -> Result<Self, PolicyError> {
        Ok(Self(Arc::new(Compiled::new(options)?)))
    }

    /// What plan mode says of calls, whatever the session's own policy is: what reads is allowed, and so are commands that only look and
    /// notes of the session; all else is refused. Looks up where the folders of the workspace lead.
    ///
    /// # Errors
    /// None so far; as of [`Self::new`].
    pub fn planning(cwd: &Path, folders: &[std::path::PathBuf], home: &Path) -> Result<Self, PolicyError> {
        Ok(Self(Arc::new(Compiled::planning(cwd, folders, home)?)))
    }

    /// Whether everything is allowed, without a look at it.
    #[must_use]
    pub fn is_unrestricted(&self) -> bool {
        let options = self.0.options();
        options.preset == PermissionPreset::Full
            && options.project_preset.is_none_or(|preset| preset == PermissionPreset::Full)
            && self.0.rules().all(|(.., rule)| rule.action() == PermissionAction::Allow)
    }

    /// What the policy is made of.
    #[must_use]
    pub fn options(&self) -> &PolicyOptions {
        self.0.options()
    }

    /// This policy with a rule of the session more.
    ///
    /// # Errors
    /// The rule cannot be used.
    pub fn with_session_rule(&self, rule: PermissionRule) -> Result<Self, PolicyError> {
        let mut options = self.0.options().clone();
        match options.layers.iter_mut().find(|layer| layer.source == RuleSource::Session) {
            Some(layer) => layer.rules.push(rule),
            None => options.layers.push(RuleLayer { source: RuleSource::Session, rules: vec![rule] }),
        }
        Self::new(options)
    }

    /// The verdict about a call of `tool`.
    ///
    /// Takes time in proportion to a command's text, and looks at the links of the paths that it names: blocks for as long as the file
    /// system does.
    #[must_use]
    pub fn decide(&self, tool: &str, subject: Subject<'_>) -> PolicyDecision {
        let compiled = &*self.0;
        let plain = |verdict: Verdict, suggestion: Option<PermissionRule>| PolicyDecision {
            suggestion: suggestion.filter(|_| verdict.action == PermissionAction::Ask),
            action: verdict.action,
            rule: verdict.rule,
            reason: verdict.reason,
            parsed: Vec::new(),
        };
        match subject {
            Subject::Command { text, folder, variables } => {
                decide_command(compiled, self.is_unrestricted(), text, folder, variables)
            }
            Subject::Read { path, is_deep } => {
                let mut verdict = compiled.file(tool, path, FileAccess::Read);
                if is_deep {
                    verdict = verdict.and(compiled.deep_read(path));
                }
                plain(verdict, None)
            }
            Subject::Write { path } => {
                let verdict = compiled.file(tool, path, FileAccess::Write);
                plain(verdict, suggest::for_write(path, compiled.options()))
            }
            Subject::TrustedRead => plain(compiled.trusted_read(tool), Some(suggest::for_tool(tool))),
            Subject::OwnNotes => plain(compiled.own_notes(tool), Some(suggest::for_tool(tool))),
            Subject::Other => plain(compiled.call(tool), Some(suggest::for_tool(tool))),
        }
    }
}

fn decide_command(
    compiled: &Compiled,
    is_unrestricted: bool,
    text: &str,
    folder: &Path,
    variables: &[String],
) -> PolicyDecision {
    let home = compiled.options().home.to_string_lossy();
    let script = shell::parse(text, Folders::one(folder), &home);
    let (mut verdict, parsed) = command::judge(compiled, &script, variables);
    if is_unrestricted {
        let reason = "the preset full allows everything, and no rule is against it";
        verdict = Verdict::new(PermissionAction::Allow, reason);
    }
    if script.commands.is_empty() && script.obscure.is_none() {
        verdict = Verdict::new(PermissionAction::Allow, "it runs nothing");
    }
    PolicyDecision {
        suggestion: (verdict.action == PermissionAction::Ask && script.obscure.is_none())
            .then(|| suggest::for_commands(compiled, &script.commands))
            .flatten(),
        action: verdict.action,
        rule: verdict.rule,
        reason: verdict.reason,
        parsed,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use agentd_protocol::settings::PermissionAction::{Allow, Ask, Deny};

    use super::*;

    fn policy(preset: PermissionPreset, rules: &[(&str, Option<&str>, PermissionAction)]) -> Policy {
        let rule = |(tool, path, action): &(&str, Option<&str>, PermissionAction)| PermissionRule {
            tool: (*tool).to_owned(),
            command: None,
            path: path.map(str::to_owned),
            action: *action,
            reason: None,
        };
        let layers = vec![RuleLayer { source: RuleSource::User, rules: rules.iter().map(rule).collect() }];
        let (cwd, home) = (Path::new("/w").to_owned(), Path::new("/h").to_owned());
        Policy::new(PolicyOptions { preset, project_preset: None, layers, cwd, home, folders: Vec::new() })
            .unwrap()
    }

    #[test]
    fn a_trusted_read_is_judged_as_reading_and_by_no_rule_more_loosely() {
        use PermissionPreset::{Full, ReadOnly, Workspace};
        let tool = "mcp__s__find";
        for (preset, rules, trusted, other) in [
            (ReadOnly, &[][..], Allow, Deny),
            (PermissionPreset::Ask, &[], Allow, Ask),
            (Workspace, &[], Allow, Ask),
            (Full, &[], Allow, Allow),
            // Rules of the tool come first.
            (Workspace, &[("mcp__s__*", None, Deny)], Deny, Deny),
            (Workspace, &[("mcp__*", None, Ask)], Ask, Ask),
            (ReadOnly, &[("mcp__s__find", None, Allow)], Allow, Allow),
            // Those about reading make it stricter only.
            (Workspace, &[("read", None, Deny)], Deny, Ask),
            (Full, &[("read", None, Ask)], Ask, Allow),
            (Full, &[("read", None, Deny), (tool, None, Allow)], Deny, Allow),
            (Workspace, &[("read", None, Allow)], Allow, Ask),
            // Nobody knows which files it reads.
            (Workspace, &[("read", Some("~/.ssh/**"), Deny)], Ask, Ask),
            (ReadOnly, &[("read", Some("~/.ssh/**"), Ask)], Deny, Deny),
            (Workspace, &[("read", Some("~/.ssh/**"), Deny), (tool, None, Allow)], Allow, Allow),
            (Workspace, &[("write", Some("./x"), Deny)], Allow, Ask),
        ] {
            let policy = policy(preset, rules);
            assert_eq!(policy.decide(tool, Subject::TrustedRead).action, trusted, "{preset:?} {rules:?}");
            assert_eq!(policy.decide(tool, Subject::Other).action, other, "{preset:?} {rules:?}");
        }
    }

    #[test]
    fn notes_of_the_session_are_free_unless_a_rule_names_them() {
        for preset in [PermissionPreset::ReadOnly, PermissionPreset::Ask, PermissionPreset::Workspace] {
            let decided = |rules: &[_]| policy(preset, rules).decide("todo", Subject::OwnNotes).action;
            assert_eq!(decided(&[]), Allow);
            assert_eq!(decided(&[("read", None, Deny), ("write", None, Deny)]), Allow);
            assert_eq!((decided(&[("todo", None, Ask)]), decided(&[("*", None, Deny)])), (Ask, Deny));
        }
    }

    #[test]
    fn plan_mode_lets_the_model_look_and_nothing_else() {
        let policy = Policy::planning(Path::new("/w"), &[], Path::new("/h")).unwrap();
        let command = |text| {
            let decided =
                policy.decide("bash", Subject::Command { text, folder: Path::new("/w"), variables: &[] });
            (decided.action, decided.reason)
        };
        for text in [
            "ls",
            "git log --oneline | head -3",
            "cat a 2>/dev/null",
            "cd sub && grep -rn x . > /dev/null",
            "true",
            "git status && find . -name '*.rs' | xargs wc -l",
            "x=1; echo $x",
        ] {
            assert_eq!(command(text).0, Allow, "{text}: {}", command(text).1);
        }
        for text in [
            "cargo build",
            "ls > out",
            "ls >> /w/out",
            "sed -i s/a/b/ f",
            "find . -delete",
            "git commit -m x",
            "rm -rf x",
            "cat <<'EOF' > f\nx\nEOF",
            "eval ls",
            "$PROGRAM x",
            "sh -c 'touch x'",
            "env PATH=. ls",
            "sudo ls",
            "curl http://x",
            "python3 -c 'print(1)'",
            "echo x > /dev/tcp/a/1",
        ] {
            assert_eq!(command(text).0, Deny, "{text}: {}", command(text).1);
        }
        let (file, other) = (Path::new("/w/f"), policy.decide("mcp__s__t", Subject::Other));
        assert_eq!(policy.decide("read", Subject::Read { path: file, is_deep: false }).action, Allow);
        assert_eq!(policy.decide("mcp__s__t", Subject::TrustedRead).action, Allow);
        assert_eq!(policy.decide("todo", Subject::OwnNotes).action, Allow);
        let written = policy.decide("edit", Subject::Write { path: file });
        assert_eq!((written.action, written.reason.as_str()), (Deny, "plan mode refuses writing /w/f"));
        assert_eq!((other.action, other.reason.as_str()), (Deny, "plan mode refuses the tool mcp__s__t"));
    }
}
