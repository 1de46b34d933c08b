//! The verdict about a shell command: the strictest about its simple commands, what they start, and the files they name.

use std::path::{Path, PathBuf};

use agentd_protocol::settings::{PermissionAction, PermissionPreset};

use crate::{
    compiled::{Compiled, CompiledRow, Verdict, exec_preset},
    looks,
    paths::{clean, real},
    repository,
    rule::{FileAccess, Match},
    shell::{self, Access, Assignment, Folders, Script, SimpleCommand, Word, WordValue},
    variables,
    wrapper::{self, Inner},
};

/// How deep wrappers may lie in one another, texts of shells included.
const MAX_WRAPPERS: u32 = 8;

/// How many commands are judged for one text, those that wrappers start included.
const MAX_JUDGED: u32 = 2000;

/// The verdict about a shell command. `variables` are set for it from outside.
pub(crate) fn judge(policy: &Compiled, script: &Script, variables: &[String]) -> Verdict {
    let mut judge = Judge { policy, left: MAX_JUDGED };
    let verdict = judge.script(script, 0);
    let outside = variables.iter().map(|name| Assignment { name: name.clone(), exported: true });
    outside.fold(verdict, |verdict, assignment| verdict.and(judge.assignment(&assignment)))
}

struct Judge<'a> {
    policy: &'a Compiled,
    left: u32,
}

impl Judge<'_> {
    fn script(&mut self, script: &Script, depth: u32) -> Verdict {
        let mut verdict = Verdict::new(PermissionAction::Allow, "it runs nothing");
        for (index, command) in script.commands.iter().enumerate() {
            let of_command = self.command(command, depth);
            verdict = if index == 0 { of_command } else { verdict.and(of_command) };
        }
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
        for redirection in &command.redirections {
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
        verdict.and(self.doubts(words)).and(self.files(name, words, folders))
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
                rule.is_for_all_commands()
                    || rule.matches(words) == Match::Yes
                    || (rule.action() != PermissionAction::Allow
                        && same.as_deref().is_some_and(|same| rule.matches(same) == Match::Yes))
            })
            .map(|row| (row, Match::Yes))
            .collect()
    }

    /// Rules that refuse or ask, and may match.
    fn doubts(&self, words: &[Word]) -> Verdict {
        let same = without_options_of_git(words);
        let may = self.policy.rules().find(|(.., rule)| {
            rule.action() != PermissionAction::Allow
                && (rule.matches(words) == Match::Maybe
                    || same.as_deref().is_some_and(|same| rule.matches(same) == Match::Maybe))
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
        let mut only_looks = looks::only_looks(words);
        if only_looks
            && name == "git"
            && repository::may_be_planted(words, folders, &self.policy.options().cwd)
        {
            only_looks = false;
        }
        self.policy.preset(
            |preset| match preset {
                PermissionPreset::Full => PermissionAction::Allow,
                PermissionPreset::Workspace if only_looks => PermissionAction::Allow,
                PermissionPreset::Workspace | PermissionPreset::Ask => PermissionAction::Ask,
                PermissionPreset::ReadOnly => PermissionAction::Deny,
            },
            &if only_looks { "commands that only look".to_owned() } else { format!("running {name}") },
        )
    }

    /// The files that the words of a command name, as far as rules keep some from being read or written.
    fn files(&self, name: &str, words: &[Word], folders: &Folders) -> Verdict {
        let nothing = Verdict::new(PermissionAction::Allow, String::new());
        let name = name.rsplit('/').next().unwrap_or(name);
        let reads = self.policy.hides_files() && looks::opens_arguments(name);
        let writes =
            self.policy.keeps_files() && !looks::only_looks(words) && wrapper::unwrap(words).is_none();
        if !reads && !writes {
            return nothing;
        }
        let mut verdict = nothing;
        for word in words.get(1..).unwrap_or_default() {
            let text = match &word.value {
                WordValue::Static(text) => text.as_str(),
                WordValue::Glob { prefix } => {
                    if reads {
                        verdict = verdict.and(self.below(prefix, folders));
                    }
                    continue;
                }
                WordValue::Pipe => continue,
                WordValue::One | WordValue::Dynamic => {
                    if reads && !is_placeholder(word) {
                        verdict =
                            verdict.and(self.hidden(&format!(
                                "which file {} names is only known when it runs",
                                word.source
                            )));
                    }
                    continue;
                }
            };
            // An option may have a path behind `=`, or right behind its letter.
            let mut paths = vec![text];
            paths.extend(text.split_once('=').map(|(_, value)| value));
            if text.starts_with('-') && !text.starts_with("--") && text.len() > 2 {
                paths.extend(text.get(2..));
            }
            for path in paths {
                if reads {
                    verdict = verdict.and(self.read_rules(path, folders, looks::goes_deep(name)));
                }
                if writes {
                    verdict = verdict.and(self.write_rules(path, folders));
                }
            }
        }
        // Without a path, these look into the folder that they run in.
        if reads && looks::goes_deep(name) && !matches!(name, "ls" | "git" | "du") {
            verdict = verdict.and(self.below("./", folders));
        }
        verdict
    }

    fn hidden(&self, why: &str) -> Verdict {
        Verdict::new(PermissionAction::Ask, format!("{why}, and a rule keeps files from being read"))
    }

    /// What a rule says of reading this path; nothing where none matches.
    fn read_rules(&self, path: &str, folders: &Folders, is_deep: bool) -> Verdict {
        self.each_path(path, folders, |path| {
            if path.starts_with("/proc") || path.starts_with("/dev/fd") {
                return self.hidden(&format!("{} may lead anywhere", path.display()));
            }
            let verdict = self.policy.file("bash", path, FileAccess::Read);
            let by_rule = if verdict.rule.is_some() {
                verdict
            } else {
                Verdict::new(PermissionAction::Allow, String::new())
            };
            let is_dir = is_deep && std::fs::metadata(path).map_or(true, |found| found.is_dir());
            if is_dir { by_rule.and(self.policy.deep_read(path)) } else { by_rule }
        })
    }

    /// A command that may write names a file that a rule keeps from being written.
    fn write_rules(&self, path: &str, folders: &Folders) -> Verdict {
        self.each_path(path, folders, |path| {
            let mut verdict = self.policy.file("bash", path, FileAccess::Write);
            let counts = verdict.rule.is_some() && verdict.action != PermissionAction::Allow;
            if !counts {
                return Verdict::new(PermissionAction::Allow, String::new());
            }
            // It may only read the file.
            verdict.action = PermissionAction::Ask;
            verdict
        })
    }

    /// A pattern of files: everything below a folder.
    fn below(&self, prefix: &str, folders: &Folders) -> Verdict {
        let folder = match prefix.rfind('/') {
            Some(0) => "/",
            Some(end) => &prefix[..end],
            None => ".",
        };
        self.each_path(folder, folders, |path| self.policy.deep_read(path))
    }

    /// The strictest verdict about a path, whichever folder it is relative to.
    fn each_path(&self, path: &str, folders: &Folders, verdict: impl Fn(&Path) -> Verdict) -> Verdict {
        if path.is_empty() || path.contains('\0') {
            return Verdict::new(PermissionAction::Allow, String::new());
        }
        let folders = match (folders, Path::new(path).is_absolute()) {
            (_, true) => vec![PathBuf::from("/")],
            (Folders::Known(folders), _) => folders.clone(),
            (Folders::Unknown, _) => {
                return self.hidden(&format!("which folder {path} is in is only known when it runs"));
            }
        };
        let verdicts = folders.iter().map(|folder| verdict(&folder.join(path)));
        verdicts.reduce(Verdict::and).unwrap_or_else(|| Verdict::new(PermissionAction::Allow, String::new()))
    }

    /// The file of a redirection.
    fn target(&self, target: &Word, access: FileAccess, folders: &Folders) -> Verdict {
        let what = match access {
            FileAccess::Read => "read",
            FileAccess::Write => "written",
        };
        let unknown = || {
            if access == FileAccess::Read && !self.policy.hides_files() {
                return self.policy.file("bash", Path::new("/"), FileAccess::Read);
            }
            let why = format!("which file is {what} is only known when it runs");
            if self.policy.options().preset == PermissionPreset::Full
                && !self.policy.keeps_files()
                && !self.policy.hides_files()
            {
                return self.policy.preset(exec_preset, "it");
            }
            self.unclear(&why)
        };
        let text = match &target.value {
            WordValue::Static(text) => text,
            WordValue::Pipe => return Verdict::new(PermissionAction::Allow, "it is a pipe"),
            _ => return unknown(),
        };
        if ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty"].contains(&text.as_str()) {
            return Verdict::new(PermissionAction::Allow, format!("{text} keeps nothing"));
        }
        if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
            return self.unclear(&format!("{text} is a connection"));
        }
        let folders = match (folders, Path::new(text).is_absolute()) {
            (_, true) => vec![PathBuf::from("/")],
            (Folders::Known(folders), _) => folders.clone(),
            (Folders::Unknown, _) => return unknown(),
        };
        let verdicts = folders.iter().map(|folder| {
            let path = folder.join(text);
            // The shell goes up after it has followed links; what is shown and matched is where it leads.
            let led_to = real(&path).unwrap_or_else(|| clean(&path));
            self.policy.file("bash", &path, access).and(self.policy.file("bash", &led_to, access))
        });
        verdicts.reduce(Verdict::and).unwrap_or_else(unknown)
    }
}

/// A word that stands for what `xargs` and `find` put there, which they found by names that were judged.
fn is_placeholder(word: &Word) -> bool {
    word.source == "…" || word.source.contains("{}")
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
