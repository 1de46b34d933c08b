//! Programs that start a command in their arguments, with options that are not known here one by one: `strace`, `flock`, `ssh`.
//!
//! The presets take them for any other program. Rules that refuse or ask have to find the command wherever it stands among the words.

use crate::shell::Word;

/// Programs that start others: the command can begin at any word.
const ANYWHERE: &[&str] = &[
    "at",
    "batch",
    "bwrap",
    "catchsegv",
    "cgexec",
    "chpst",
    "chroot",
    "chrt",
    "daemonize",
    "dbus-run-session",
    "direnv",
    "dumb-init",
    "entr",
    "expect",
    "fakechroot",
    "fakeroot",
    "faketime",
    "firejail",
    "flatpak-spawn",
    "flock",
    "gosu",
    "hyperfine",
    "i386",
    "linux32",
    "linux64",
    "ltrace",
    "mosh",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "rlwrap",
    "run-parts",
    "runcon",
    "runuser",
    "schroot",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setuidgid",
    "softlimit",
    "ssh",
    "ssh-agent",
    "start-stop-daemon",
    "strace",
    "su",
    "su-exec",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "tini",
    "tmux",
    "torify",
    "torsocks",
    "toybox",
    "trickle",
    "tsocks",
    "unbuffer",
    "unshare",
    "valgrind",
    "watchexec",
    "x86_64",
    "xvfb-run",
];

/// Programs that start others behind certain words and options alone.
const BEHIND: &[(&str, &[&str])] = &[
    ("asdf", &["exec"]),
    ("bundle", &["exec"]),
    ("conda", &["run"]),
    ("docker", &["exec", "run"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    (
        "git",
        &[
            "run",
            "foreach",
            "-x",
            "--exec",
            "--extcmd",
            "--tree-filter",
            "--index-filter",
            "--msg-filter",
            "--env-filter",
            "--commit-filter",
            "--upload-pack",
            "--receive-pack",
        ],
    ),
    ("kubectl", &["exec", "run"]),
    ("less", &["+!"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("mise", &["exec", "x"]),
    ("nc", &["-e", "-c", "--exec", "--sh-exec"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec"]),
    ("nix", &["-c", "--command"]),
    ("nix-shell", &["--run", "--command"]),
    ("npm", &["exec", "x"]),
    ("pipenv", &["run"]),
    ("pnpm", &["exec", "dlx"]),
    ("podman", &["exec", "run"]),
    ("poetry", &["run"]),
    ("pyenv", &["exec"]),
    ("rbenv", &["exec"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-o", "-S"]),
    ("sftp", &["-o", "-S"]),
    ("socat", &["EXEC:", "SYSTEM:", "exec:", "system:"]),
    ("sort", &["--compress-program"]),
    (
        "tar",
        &[
            "-I",
            "-F",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
    ),
    ("uv", &["run"]),
    ("vi", &["-c", "--cmd", "+!"]),
    ("vim", &["-c", "--cmd", "+!"]),
    ("yarn", &["exec", "dlx"]),
    ("zip", &["-TT", "--unzip-command"]),
];

/// Programs that run a text among their words, which can start commands by their names in quotes.
const INTERPRETERS: &[&str] = &[
    "awk", "bun", "deno", "gawk", "lua", "mawk", "nawk", "node", "perl", "php", "python", "python2",
    "python3", "ruby", "tclsh",
];

/// The most words that are taken for the begin of a command.
const MAX_BEGINS: usize = 64;

/// What a launcher may start.
#[derive(Default)]
pub(crate) struct Launched<'a> {
    /// Commands that begin at a later word.
    pub(crate) commands: Vec<&'a [Word]>,
    /// Texts that it may hand to a shell.
    pub(crate) texts: Vec<&'a str>,
    /// What stands in quotes in a program that is among the words.
    pub(crate) quoted: Vec<&'a str>,
}

impl<'a> Launched<'a> {
    fn anywhere(&mut self, words: &'a [Word]) {
        let begins = (0..words.len()).take(MAX_BEGINS).map(|at| &words[at..]);
        self.commands.extend(begins.filter(|command| !command[0].may_be_option()));
    }

    fn text(&mut self, text: &'a str) {
        // As `exec=` of tar and `!` of editors say it.
        self.texts.push(text.trim_start_matches(['!', ':', ' ']).trim_start_matches("exec="));
    }
}

/// What a command may start, where its program is known to start others; nothing for other programs.
pub(crate) fn launched(words: &[Word]) -> Option<Launched<'_>> {
    let (name, rest) = words.split_first()?;
    let name = name.text()?.rsplit('/').next()?;
    let mut found = Launched::default();
    if ANYWHERE.binary_search(&name).is_ok() {
        found.anywhere(rest);
        for text in rest
            .iter()
            .take(MAX_BEGINS)
            .filter_map(Word::text)
            .filter(|text| text.contains([' ', '\t', '\n']))
        {
            found.text(text);
            found.texts.extend(text.split_once('=').map(|(_, value)| value));
        }
        return Some(found);
    }
    if INTERPRETERS.contains(&name) {
        for text in rest.iter().take(MAX_BEGINS).filter_map(Word::text) {
            for quote in ['"', '\'', '`'] {
                found.quoted.extend(text.split(quote).skip(1).step_by(2).take(MAX_BEGINS));
            }
        }
        return Some(found);
    }
    let (_, marks) = BEHIND.iter().find(|row| row.0 == name)?;
    for (at, text) in
        rest.iter().enumerate().take(MAX_BEGINS).filter_map(|(at, word)| Some((at, word.text()?)))
    {
        for mark in *marks {
            match text.strip_prefix(mark) {
                Some("") => {
                    found.anywhere(&rest[at + 1..]);
                    if let Some(next) = rest.get(at + 1).and_then(Word::text) {
                        found.text(next);
                    }
                }
                Some(value) if value.starts_with('=') => found.text(&value[1..]),
                Some(value)
                    if !mark.starts_with("--") && !mark.ends_with(char::is_alphabetic) || mark.len() == 2 =>
                {
                    found.text(value)
                }
                _ => {}
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(words: &[&str], command: &str) -> bool {
        let words: Vec<Word> = words.iter().map(|word| Word::of(word)).collect();
        launched(&words).is_some_and(|found| {
            found.commands.iter().any(|words| words[0].text() == Some(command))
                || found.texts.contains(&command)
        })
    }

    #[test]
    fn commands_and_texts() {
        assert!(ANYWHERE.is_sorted());
        for words in [
            &["strace", "-o", "out", "rm", "x"][..],
            &["docker", "exec", "-it", "name", "rm", "x"],
            &["/usr/bin/fd", "a", "-x", "rm"],
            &["tar", "xf", "a", "--to-command=rm"],
            &["tar", "cf", "a", ".", "--checkpoint-action=exec=rm"],
            &["rsync", "-erm", "a", "b"],
            &["vim", "-c", "!rm"],
            &["socat", "EXEC:rm", "-"],
        ] {
            assert!(has(words, "rm"), "{words:?}");
        }
        assert!(
            has(&["script", "-qc", "rm x", "log"], "rm x")
                && has(&["ssh", "-oProxyCommand=rm x", "h"], "rm x")
        );
        let words = [Word::of("python3"), Word::of("-c"), Word::of("import os; os.system('rm x')")];
        assert_eq!(launched(&words).unwrap().quoted, ["rm x"]);
        for words in [&["git", "rm", "x"][..], &["docker", "rm", "x"], &["fd", "rm"], &["echo", "rm"]] {
            assert!(!has(words, "rm"), "{words:?}");
        }
    }
}
