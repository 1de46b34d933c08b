//! The policy of a session, and the verdict for a call.

use std::{path::Path, sync::Arc};

use agentd_protocol::settings::{PermissionAction, PermissionPreset, PermissionRule};

use crate::{
    command,
    compiled::{Compiled, DecidingRule, PolicyError, PolicyOptions, RuleLayer, RuleSource, Verdict},
    parsed::ParsedCommand,
    rule::FileAccess,
    shell::{self, Folders, Script},
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
    /// It reads the web, and changes nothing.
    Web {
        /// The host, in lower case; `None` where the call names none.
        host: Option<&'a str>,
    },
    /// It runs a shell command on another host.
    RemoteCommand {
        /// The name of the host, as the user has configured it.
        host: &'a str,
        /// The text.
        text: &'a str,
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
                let script =
                    shell::parse(text, Folders::one(folder), &compiled.options().home.to_string_lossy());
                decide_command(compiled, self.is_unrestricted(), &script, CommandPlace::Here(variables))
            }
            Subject::RemoteCommand { host, text } => {
                // Folders and the home directory are those of the host, which nobody knows here.
                let script = shell::parse(text, Folders::Unknown, "/");
                decide_command(compiled, self.is_unrestricted(), &script, CommandPlace::On(host))
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
            Subject::Web { host } => {
                let suggestion = match host {
                    Some(host) => suggest::for_host(tool, host),
                    None => suggest::for_tool(tool),
                };
                plain(compiled.web(tool, host), Some(suggestion))
            }
            Subject::TrustedRead => plain(compiled.trusted_read(tool), Some(suggest::for_tool(tool))),
            Subject::OwnNotes => plain(compiled.own_notes(tool), Some(suggest::for_tool(tool))),
            Subject::Other => plain(compiled.call(tool), Some(suggest::for_tool(tool))),
        }
    }
}

/// Where a command runs.
#[derive(Debug, Clone, Copy)]
enum CommandPlace<'a> {
    /// On this machine, with these variables.
    Here(&'a [String]),
    /// On this host.
    On(&'a str),
}

fn decide_command(
    compiled: &Compiled,
    is_unrestricted: bool,
    script: &Script,
    place: CommandPlace<'_>,
) -> PolicyDecision {
    let (mut verdict, parsed) = match place {
        CommandPlace::Here(variables) => command::judge(compiled, script, variables),
        CommandPlace::On(host) => command::judge_remote(compiled, script, host),
    };
    if is_unrestricted {
        let reason = "the preset full allows everything, and no rule is against it";
        verdict = Verdict::new(PermissionAction::Allow, reason);
    }
    if script.commands.is_empty() && script.obscure.is_none() {
        verdict = Verdict::new(PermissionAction::Allow, "it runs nothing");
    }
    PolicyDecision {
        suggestion: (verdict.action == PermissionAction::Ask && script.obscure.is_none())
            .then(|| {
                let host = match place {
                    CommandPlace::Here(_) => None,
                    CommandPlace::On(host) => Some(host),
                };
                suggest::for_commands(compiled, &script.commands, host)
            })
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
            domain: None,
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
    fn pages_are_judged_by_their_host() {
        let rule = |domain: Option<&str>, action| PermissionRule {
            tool: "web_fetch".to_owned(),
            command: None,
            path: None,
            domain: domain.map(str::to_owned),
            action,
            reason: None,
        };
        let with = |preset, rules: Vec<PermissionRule>| {
            let layers = vec![RuleLayer { source: RuleSource::User, rules }];
            let (cwd, home) = (Path::new("/w").to_owned(), Path::new("/h").to_owned());
            Policy::new(PolicyOptions {
                preset,
                project_preset: None,
                layers,
                cwd,
                home,
                folders: Vec::new(),
            })
        };
        let rules = vec![
            rule(Some("example.org"), Allow),
            rule(Some("*.evil.example"), Deny),
            rule(Some("ask.*"), Ask),
        ];
        let policy = with(PermissionPreset::ReadOnly, rules).unwrap();
        let of = |host| policy.decide("web_fetch", Subject::Web { host }).action;
        assert_eq!(
            (of(Some("example.org")), of(Some("docs.example.org")), of(Some("notexample.org"))),
            (Allow, Allow, Deny)
        );
        assert_eq!((of(Some("a.evil.example")), of(Some("ask.me")), of(None)), (Deny, Ask, Deny));
        let asked = with(PermissionPreset::Workspace, Vec::new())
            .unwrap()
            .decide("web_fetch", Subject::Web { host: Some("a.b") });
        assert_eq!((asked.action, asked.suggestion), (Ask, Some(rule(Some("a.b"), Allow))));
        assert_eq!(
            with(PermissionPreset::Full, Vec::new())
                .unwrap()
                .decide("web_search", Subject::Web { host: None })
                .action,
            Allow
        );
        let planning = Policy::planning(Path::new("/w"), &[], Path::new("/h")).unwrap();
        assert_eq!(planning.decide("web_fetch", Subject::Web { host: Some("a.b") }).action, Allow);
        // A rule about a host is none about other calls.
        assert_eq!(policy.decide("web_fetch", Subject::Other).action, Deny);
        for wrong in ["https://example.org", "a/b", ""] {
            assert_eq!(
                with(PermissionPreset::Full, vec![rule(Some(wrong), Deny)]).unwrap_err().field,
                "domain"
            );
        }
    }

    #[test]
    fn a_path_counts_in_rules_of_every_tool_of_files() {
        use PermissionPreset::{Full, ReadOnly};
        let write = |policy: &Policy, tool: &str, path: &str| {
            policy.decide(tool, Subject::Write { path: Path::new(path) }).action
        };
        let kept = policy(Full, &[("edit", Some("./kept/**"), Deny)]);
        assert_eq!((write(&kept, "edit", "/w/kept/a"), write(&kept, "edit", "/w/a")), (Deny, Allow));
        assert_eq!(write(&kept, "write", "/w/kept/a"), Allow, "another tool");
        let allowed = policy(ReadOnly, &[("edit", Some("./src/**"), Allow)]);
        assert_eq!((write(&allowed, "edit", "/w/src/a"), write(&allowed, "edit", "/w/a")), (Allow, Deny));
        let read = |policy: &Policy, path: &str| {
            policy.decide("grep", Subject::Read { path: Path::new(path), is_deep: false }).action
        };
        let hidden = policy(Full, &[("grep", Some("./kept/**"), Deny)]);
        assert_eq!((read(&hidden, "/w/kept/a"), read(&hidden, "/w/a")), (Deny, Allow));
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
    fn commands_on_other_hosts_have_rules_of_their_own() {
        use PermissionPreset::{Full, ReadOnly, Workspace};
        let rule = |tool: &str, command: &str, action| PermissionRule {
            tool: tool.to_owned(),
            command: Some(command.to_owned()),
            path: None,
            domain: None,
            action,
            reason: None,
        };
        let decided = |preset, rules: &[PermissionRule], host: &str, text: &str| {
            let layers = vec![RuleLayer { source: RuleSource::User, rules: rules.to_vec() }];
            let (cwd, home) = (Path::new("/w").to_owned(), Path::new("/h").to_owned());
            let options =
                PolicyOptions { preset, project_preset: None, layers, cwd, home, folders: Vec::new() };
            Policy::new(options).unwrap().decide("ssh", Subject::RemoteCommand { host, text })
        };
        let df = [rule("ssh", "box df *", Allow)];
        for (preset, rules, host, text, action) in [
            (Full, &[][..], "box", "rm -rf x", Allow),
            (Workspace, &[], "box", "ls", Ask),
            (PermissionPreset::Ask, &[], "box", "ls", Ask),
            (ReadOnly, &[], "box", "ls", Deny),
            // Rules name the host first.
            (Workspace, &df, "box", "df -h", Allow),
            (Workspace, &df, "prod", "df -h", Ask),
            (Workspace, &df, "box", "df; rm x", Ask),
            (Workspace, &df, "box", "df > /etc/passwd", Ask),
            (Workspace, &df, "box", "$X", Ask),
            (Workspace, &[rule("ssh", "* df *", Allow)], "prod", "df", Allow),
            (Workspace, &[rule("ssh", "*", Allow)], "prod", "reboot", Allow),
            // Those of commands of this machine say nothing.
            (Workspace, &[rule("bash", "ls *", Allow), rule("*", "ls *", Allow)], "box", "ls", Ask),
            (Full, &[rule("bash", "rm *", Deny)], "box", "rm x", Allow),
            // What is started by others is seen.
            (Full, &[rule("ssh", "prod reboot *", Deny)], "prod", "sudo reboot now", Deny),
            (Full, &[rule("ssh", "prod reboot *", Deny)], "prod", "sh -c '/sbin/reboot'", Deny),
            (Full, &[rule("ssh", "prod reboot *", Deny)], "box", "reboot", Allow),
        ] {
            let found = decided(preset, rules, host, text);
            assert_eq!(found.action, action, "{preset:?} {host} {text}: {}", found.reason);
        }
        let suggested = |text| decided(Workspace, &[], "box", text).suggestion.and_then(|rule| rule.command);
        assert_eq!(suggested("systemctl status nginx").as_deref(), Some("box systemctl status *"));
        assert_eq!(suggested("ls -l").as_deref(), Some("box ls *"));
        assert_eq!((suggested("rm x"), suggested("a; b")), (None, None));
        // A rule of `ssh` says nothing about commands here.
        let here = policy(Workspace, &[("ssh", None, Allow)]);
        let subject = Subject::Command { text: "make", folder: Path::new("/w"), variables: &[] };
        assert_eq!(here.decide("bash", subject).action, Ask);
        assert_eq!(here.decide("ssh", Subject::RemoteCommand { host: "box", text: "make" }).action, Allow);
        assert_eq!(here.decide("ssh", Subject::Other).action, Allow);
        let planning = Policy::planning(Path::new("/w"), &[], Path::new("/h")).unwrap();
        assert_eq!(planning.decide("ssh", Subject::RemoteCommand { host: "box", text: "ls" }).action, Deny);
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
