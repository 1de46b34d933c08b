//! The verdict about a shell command: the strictest about its simple commands, what they start, and the files they name.

mod files;

use agentd_protocol::{
    remote_hosts::SSH_TOOL,
    settings::{PermissionAction, PermissionPreset},
};

use crate::{
    compiled::{Compiled, CompiledRow, Verdict, exec_preset},
    launcher,
    looks::{self, ListedFiles},
    parsed::ParsedCommand,
    repository,
    rule::{FileAccess, Match},
    shell::{self, Access, Assignment, Folders, Script, SimpleCommand, Word},
    variables,
    wrapper::{self, Inner},
};

/// How deep wrappers may lie in one another, texts of shells included.
const MAX_WRAPPERS: u32 = 8;

/// How many commands are judged for one text, those that wrappers start included.
const MAX_JUDGED: u32 = 2000;

/// The verdict about a shell command, and its simple commands, each before those that it starts. `variables` are set for it from
/// outside.
pub(crate) fn judge(
    policy: &Compiled,
    script: &Script,
    variables: &[String],
) -> (Verdict, Vec<ParsedCommand>) {
    let mut judge = Judge::new(policy, None);
    let verdict = judge.whole(script);
    let outside = variables.iter().map(|name| Assignment { name: name.clone(), exported: true });
    let verdict = outside.fold(verdict, |verdict, assignment| verdict.and(judge.assignment(&assignment)));
    (verdict, judge.parsed)
}

/// The verdict about a shell command on another host, and its simple commands, each before those that it starts. Of the host's files
/// and programs nothing is known: what no rule allows is a program that may do anything.
pub(crate) fn judge_remote(policy: &Compiled, script: &Script, host: &str) -> (Verdict, Vec<ParsedCommand>) {
    let mut judge = Judge::new(policy, Some(host));
    let verdict = judge.whole(script);
    (verdict, judge.parsed)
}

struct Judge<'a> {
    policy: &'a Compiled,
    /// The host that the command runs on, if it is another one.
    host: Option<&'a str>,
    left: u32,
    /// Whether a word of a launcher is taken for a command: what begins at a later one is judged beside it.
    is_launched: bool,
    /// The files whose names the command reads, where it is known to read names.
    gets_names_of: Option<ListedFiles>,
    /// Whether what is looked at is a command for certain, which is listed, and no guess at one.
    is_certain: bool,
    /// The commands until here.
    parsed: Vec<ParsedCommand>,
}

impl<'a> Judge<'a> {
    fn new(policy: &'a Compiled, host: Option<&'a str>) -> Self {
        Self {
            policy,
            host,
            left: MAX_JUDGED,
            is_launched: false,
            gets_names_of: None,
            is_certain: true,
            parsed: Vec::new(),
        }
    }

    fn whole(&mut self, script: &Script) -> Verdict {
        let verdict = self.script(script, 0);
        if self.left == 0 {
            return verdict.and(self.unclear("the command starts too many others"));
        }
        verdict
    }

    /// The tool whose rules count.
    fn tool(&self) -> &'static str {
        if self.host.is_some() { SSH_TOOL } else { "bash" }
    }

    fn script(&mut self, script: &Script, depth: u32) -> Verdict {
        let mut verdict = Verdict::new(PermissionAction::Allow, "it runs nothing");
        let outside = (self.gets_names_of, std::mem::take(&mut self.is_launched));
        for (index, command) in script.commands.iter().enumerate() {
            let fed_by = script.commands.get(command.fed_by.clone()).unwrap_or_default();
            self.gets_names_of = looks::listed_files(fed_by.iter().map(|command| &*command.words))
                .filter(|_| command.redirections.is_empty());
            if self.is_certain {
                self.parsed.push(ParsedCommand::of(command));
            }
            let of_command = self.command(command, depth);
            verdict = if index == 0 { of_command } else { verdict.and(of_command) };
        }
        (self.gets_names_of, self.is_launched) = outside;
        match &script.obscure {
            Some(what) => verdict.and(self.unclear(&format!("the command is not understood: {what}"))),
            None => verdict,
        }
    }

    /// What is not understood is asked about, by every preset but the one that refuses all but reading.
    fn unclear(&self, reason: &str) -> Verdict {
        let ask = Verdict::new(PermissionAction::Ask, reason);
        let preset = self.policy.preset(exec_preset, "commands that do more than look");
        if preset.action == PermissionAction::Deny {
            Verdict { reason: format!("{reason}; {}", preset.reason), ..preset }
        } else {
            ask
        }
    }

    fn command(&mut self, command: &SimpleCommand, depth: u32) -> Verdict {
        let mut verdict = self.words(&command.words, &command.folders, depth);
        for assignment in &command.assignments {
            verdict = verdict.and(self.assignment(assignment));
        }
        if self.host.is_some() {
            let writes = command.redirections.iter().any(|redirection| redirection.access == Access::Write);
            return if writes {
                verdict.and(self.policy.preset(exec_preset, "writing files of another host"))
            } else {
                verdict
            };
        }
        let is_exec = matches!(&command.words[..], [name] if name.text() == Some("exec"));
        for redirection in &command.redirections {
            if is_exec && redirection.access == Access::Read {
                verdict = verdict.and(self.unclear("what the commands behind it read is changed"));
            }
            let access = match redirection.access {
                Access::Read => FileAccess::Read,
                Access::Write => FileAccess::Write,
            };
            verdict = verdict.and(self.target(&redirection.target, access, &command.folders));
        }
        verdict
    }

    fn assignment(&self, assignment: &Assignment) -> Verdict {
        if variables::is_harmless(assignment)
            || self.policy.options().preset == PermissionPreset::Full && !is_of_loader(&assignment.name)
        {
            return Verdict::new(PermissionAction::Allow, "it sets a variable");
        }
        self.unclear(&format!("the variable {} may change what programs do", assignment.name))
    }

    /// The words of a simple command.
    fn words(&mut self, words: &[Word], folders: &Folders, depth: u32) -> Verdict {
        let Some(name) = words.first() else {
            return Verdict::new(PermissionAction::Allow, "it runs nothing");
        };
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || depth > MAX_WRAPPERS {
            return self.unclear("the command starts too many others");
        }
        let Some(name) = name.text() else {
            return self.unclear(&format!("which program {} is, is only known when it runs", name.source));
        };
        let rows = self.matching(words);
        let explicit = self.policy.strictest(rows.iter().map(|(row, _)| *row));
        let verdict = match wrapper::unwrap(words) {
            Some(wrapped) => {
                let names = rows.iter().map(|(row, _)| row.2.named_words()).max().unwrap_or(0);
                // A program of the project may have the name of a wrapper.
                let is_systems =
                    !name.contains('/') || matches!(name.rsplit_once('/'), Some(("/bin" | "/usr/bin", _)));
                let itself =
                    (!is_systems && explicit.is_none()).then(|| self.by_preset(name, words, folders));
                let verdict = self.wrapped(&wrapped, explicit, names, folders, depth);
                itself.into_iter().fold(verdict, Verdict::and)
            }
            None => explicit.unwrap_or_else(|| self.by_preset(name, words, folders)),
        };
        let of_files = match self.host {
            Some(_) => Verdict::new(PermissionAction::Allow, String::new()),
            None => self.files(name, words, folders),
        };
        verdict.and(self.doubts(words)).and(of_files).and(self.launched(words, folders, depth))
    }

    /// What rules that refuse or ask say of the commands that a program like `strace` may start.
    fn launched(&mut self, words: &[Word], folders: &Folders, depth: u32) -> Verdict {
        let mut verdict = Verdict::new(PermissionAction::Allow, String::new());
        let is_strict = |(.., rule): &CompiledRow| rule.action() != PermissionAction::Allow;
        if self.is_launched || !self.policy.rules().any(is_strict) {
            return verdict;
        }
        let Some(launched) = launcher::launched(words) else { return verdict };
        let is_certain = std::mem::take(&mut self.is_certain);
        self.is_launched = true;
        for command in launched.commands {
            let found = self.words(command, folders, depth + 1);
            // Words that are no command at all are not understood, which says nothing.
            let is_command = found.rule.is_some() || wrapper::unwrap(command).is_some();
            verdict = if is_command { verdict.and(found) } else { verdict };
        }
        self.is_launched = false;
        for text in launched.texts {
            let home = self.policy.options().home.to_string_lossy().into_owned();
            let script = shell::parse(text, folders.clone(), &home);
            let found = self.script(&script, depth + 1);
            verdict = if found.rule.is_some() { verdict.and(found) } else { verdict };
        }
        for text in launched.quoted {
            let home = self.policy.options().home.to_string_lossy().into_owned();
            let mut found = self.script(&shell::parse(text, folders.clone(), &home), depth + 1);
            if found.rule.is_some() && found.action != PermissionAction::Allow {
                found.action = PermissionAction::Ask;
                found.reason = format!("{}, and {text:?} in its program may be such a command", found.reason);
                verdict = verdict.and(found);
            }
        }
        self.is_certain = is_certain;
        verdict
    }

    /// A command that starts others: the strictest about them; what is said of the wrapper counts where it is stricter, or names what it
    /// starts.
    fn wrapped(
        &mut self,
        wrapped: &wrapper::Wrapped,
        explicit: Option<Verdict>,
        named_words: usize,
        folders: &Folders,
        depth: u32,
    ) -> Verdict {
        let mut verdict: Option<Verdict> = None;
        let mut inner_at = None;
        for inner in &wrapped.inner {
            let of_inner = match inner {
                Inner::Words { words, assignments, at } => {
                    inner_at = Some(*at);
                    if self.is_certain && !words.is_empty() {
                        self.parsed.push(ParsedCommand::started(words, assignments));
                    }
                    let mut of_inner = if words.is_empty() {
                        self.unclear("it starts a command that is not there")
                    } else {
                        self.words(words, folders, depth + 1)
                    };
                    for assignment in assignments {
                        of_inner = of_inner.and(self.assignment(assignment));
                    }
                    of_inner
                }
                Inner::Text(text) => {
                    let home = self.policy.options().home.to_string_lossy().into_owned();
                    let script = shell::parse(text, folders.clone(), &home);
                    self.script(&script, depth + 1)
                }
                Inner::Own(words) => {
                    inner_at = Some(0);
                    self.words(words, folders, depth + 1)
                }
            };
            verdict = Some(verdict.map_or(of_inner.clone(), |verdict| verdict.and(of_inner)));
        }
        let asks = wrapped.asks.map(|why| self.unclear(why));
        let is_named = inner_at.is_some_and(|at| at > 0 && named_words > at);
        match explicit {
            // A rule such as "sudo systemctl status *" means just this.
            Some(explicit) if explicit.action == PermissionAction::Allow => match verdict {
                Some(verdict) if is_named && verdict.action != PermissionAction::Deny => explicit,
                Some(verdict) => asks.map_or(verdict.clone(), |asks| verdict.and(asks)),
                None => self.unclear(wrapped.asks.unwrap_or("what it starts is not known")),
            },
            explicit => [explicit, verdict, asks]
                .into_iter()
                .flatten()
                .reduce(Verdict::and)
                .unwrap_or_else(|| self.unclear("what it starts is not known")),
        }
    }

    /// The rules that match for certain.
    fn matching(&self, words: &[Word]) -> Vec<(&CompiledRow, Match)> {
        let same = without_options_of_git(words);
        self.policy
            .rules()
            .filter(|(.., rule)| {
                rule.is_for_all_commands(self.tool())
                    || rule.matches(self.host, words) == Match::Yes
                    || (rule.action() != PermissionAction::Allow
                        && same.as_deref().is_some_and(|same| rule.matches(self.host, same) == Match::Yes))
            })
            .map(|row| (row, Match::Yes))
            .collect()
    }

    /// Rules that refuse or ask, and may match.
    fn doubts(&self, words: &[Word]) -> Verdict {
        let same = without_options_of_git(words);
        let others = same.is_none().then(|| without_options(words)).into_iter().flatten();
        let others: Vec<Vec<Word>> = others.collect();
        let may = self.policy.rules().find(|(.., rule)| {
            rule.action() != PermissionAction::Allow
                && (rule.matches(self.host, words) == Match::Maybe
                    || same.as_deref().is_some_and(|same| rule.matches(self.host, same) == Match::Maybe)
                    || (rule.named_words() > 1
                        && others.iter().any(|words| rule.matches(self.host, words) != Match::No)))
        });
        match may {
            None => Verdict::new(PermissionAction::Allow, String::new()),
            Some(row) => {
                let mut verdict = self.policy.by_rule(row);
                verdict.action = PermissionAction::Ask;
                verdict.reason = format!("{}, and it may be such a command", verdict.reason);
                verdict
            }
        }
    }

    fn by_preset(&self, name: &str, words: &[Word], folders: &Folders) -> Verdict {
        if self.host.is_some() {
            return self.policy.preset(exec_preset, &format!("running {name} on another host"));
        }
        let mut only_looks = looks::only_looks(words);
        if only_looks && name == "git" && repository::may_be_planted(words, folders, self.policy.workspace())
        {
            only_looks = false;
        }
        self.policy.preset(
            |preset| match preset {
                PermissionPreset::Full => PermissionAction::Allow,
                PermissionPreset::Workspace if only_looks => PermissionAction::Allow,
                PermissionPreset::ReadOnly if only_looks && self.policy.lets_look() => {
                    PermissionAction::Allow
                }
                PermissionPreset::Workspace | PermissionPreset::Ask => PermissionAction::Ask,
                PermissionPreset::ReadOnly => PermissionAction::Deny,
            },
            &if only_looks { "commands that only look".to_owned() } else { format!("running {name}") },
        )
    }
}

/// Variables that decide which code a program loads: asked about whatever the preset is.
fn is_of_loader(name: &str) -> bool {
    name.starts_with("LD_")
        || name.starts_with("DYLD_")
        || matches!(
            name,
            "BASH_ENV" | "ENV" | "PATH" | "IFS" | "PROMPT_COMMAND" | "SHELLOPTS" | "BASHOPTS" | "PS4"
        )
        || name.starts_with("GIT_")
        || name.starts_with("BASH_FUNC_")
        || matches!(name, "PAGER" | "EDITOR" | "VISUAL" | "LESSOPEN" | "LESSCLOSE")
}

/// What a command may be without options before its subcommand: `npm --prefix x publish` may be `npm publish`, for which option takes a
/// value is not known.
fn without_options(words: &[Word]) -> Vec<Vec<Word>> {
    const MAX_SKIPPED: usize = 8;
    let is_option = |word: &Word| word.text().is_some_and(|text| text.starts_with(['-', '+']));
    let (Some(name), Some(true)) = (words.first(), words.get(1).map(is_option)) else { return Vec::new() };
    let begins = (2..words.len()).take(MAX_SKIPPED).filter(|at| !is_option(&words[*at]));
    begins.map(|at| [std::slice::from_ref(name), &words[at..]].concat()).collect()
}

/// The words of a git command without the options before its subcommand: `git -C x push` is a push.
fn without_options_of_git(words: &[Word]) -> Option<Vec<Word>> {
    let name = words.first()?.text()?;
    if name.rsplit('/').next() != Some("git") || !words.get(1)?.may_be_option() {
        return None;
    }
    let mut at = 1;
    while let Some(text) = words.get(at).and_then(Word::text).filter(|text| text.starts_with('-')) {
        let takes_value = matches!(
            text,
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--exec-path"
                | "--config-env"
                | "--super-prefix"
        );
        at += if takes_value { 2 } else { 1 };
    }
    let mut same = vec![Word::of("git")];
    same.extend(words.get(at..)?.iter().cloned());
    Some(same)
}
