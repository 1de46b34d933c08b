//! Completions are never executed by the shell: tested in a real interactive bash, from typing to running the line.
//!
//! zsh and fish are tested where they are installed, and always in `tests/outside/shells`.

use std::{fs, path::Path};

use agentd_e2e::{Home, MockServer, Reply, Service, Terminal, binaries, sse};
use serde_json::json;

/// Hostile names of models and files. `FILE` is a file that appears when the shell executes the name.
const PAYLOADS: [&str; 26] = [
    "$(touch${IFS}FILE)",
    "`touch${IFS}FILE`",
    ";touch FILE;",
    "&touch FILE&",
    "|touch FILE",
    "\ntouch FILE\n",
    ">FILE",
    "<(touch FILE)",
    "x$HOME",
    "${PATH}",
    "$((1+1))",
    "*",
    "?[a-z]",
    "{a,b}",
    "!!",
    "!touch",
    "it's",
    "say \"x\"",
    "ends\"",
    "ends'",
    "back\\slash",
    "two words",
    " # x",
    "~",
    "a:b=c:d",
    "é\u{301}|",
];

/// Names that are not offered: they do not fit on a line, or contain control characters.
fn is_left_out(payload: &str) -> bool {
    payload.contains('\n')
}

/// A shell, its set-up, and its quoting.
struct Shell {
    program: &'static str,
    args: &'static [&'static str],
    ready: &'static str,
    quotes: &'static [&'static str],
    /// The shell can quote `!` inside of double quotes.
    quotes_bangs: bool,
}

const BASH: Shell = Shell {
    program: "bash",
    args: &["--norc", "--noprofile", "-i"],
    ready: "set -o history -H; bind 'set enable-bracketed-paste off'; source <(agentctl completions bash)",
    quotes: &["", "'", "\"", "loc'al'", "--model="],
    quotes_bangs: false,
};

const ZSH: Shell = Shell {
    program: "zsh",
    args: &["-f", "-i"],
    ready: "autoload -Uz compinit; compinit -u -D; setopt banghist; unsetopt prompt_sp; bindkey -e; source <(agentctl completions zsh)",
    quotes: &["", "'", "\""],
    quotes_bangs: true,
};

const FISH: Shell = Shell {
    program: "fish",
    args: &["--no-config", "-i"],
    ready: "set fish_greeting; function fish_prompt; echo '$ '; end; agentctl completions fish | source",
    quotes: &["", "'", "\""],
    quotes_bangs: true,
};

/// A home whose server lists models with such names, and whose project has such files.
struct Trap {
    home: Home,
    server: MockServer,
    _service: Service,
}

impl Trap {
    fn new() -> Self {
        let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
        let home = Home::new();
        let id = |at: usize, payload: &str| format!("m{at}-{}", payload.replace("FILE", "ran"));
        let models: Vec<_> =
            PAYLOADS.iter().enumerate().map(|(at, payload)| json!({"id": id(at, payload)})).collect();
        home.configure(&json!({"providers": {"local": {
            "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "test-key-1234", "models": models,
        }}}));
        for (at, payload) in PAYLOADS.iter().enumerate() {
            home.write(&format!("f{}", id(at, payload)), "");
        }
        let service = Service::start(&home, &[]);
        Self { home, server, _service: service }
    }

    fn ran(&self) -> bool {
        self.home.project().join("ran").exists()
    }
}

/// A running interactive shell.
struct Interactive {
    terminal: Terminal,
    typed: usize,
}

impl Interactive {
    fn start(home: &Home, shell: &Shell) -> Self {
        let mut terminal = Terminal::start(home, Path::new(shell.program), shell.args);
        let programs = binaries::agentctl();
        let programs = programs.parent().unwrap().display().to_string();
        terminal.press(&format!("export PATH={programs}:\"$PATH\"\n"));
        terminal.press(&format!("{}; printf '\\nrea''dy\\n'\n", shell.ready));
        terminal.wait_for("\nready\n");
        Self { terminal, typed: 0 }
    }

    /// Types and completes `typed`, then prints the words of the line instead of running it.
    fn words(&mut self, typed: &str, after: &str) -> Vec<String> {
        self.typed += 1;
        let (begin, end) = (format!("\nbegin{}\n", self.typed), format!("\nend{}\n", self.typed));
        // Ctrl-A and Ctrl-E go to the beginning and the end of the line. Shells print escapes before a command's output,
        // hence the empty line.
        self.terminal.press(&format!(
            "{typed}\t{after}\u{1}printf '%s\\n' '' be''gin{n} \u{5} en''d{n}\n",
            n = self.typed
        ));
        self.terminal.wait_for(&end);
        let shown = self.terminal.shown();
        let from = shown.rfind(&begin).expect("the first word") + begin.len();
        let to = shown.rfind(&end).expect("the last word");
        shown[from..to].split('\n').map(str::to_owned).collect()
    }
}

fn completes_only_words(shell: &Shell) {
    let trap = Trap::new();
    let mut interactive = Interactive::start(&trap.home, shell);
    for (at, payload) in PAYLOADS.iter().enumerate() {
        let payload = payload.replace("FILE", "ran");
        for quote in shell.quotes {
            let (typed, before) = match *quote {
                "--model=" => (format!("agentctl prompt --model=local/m{at}-"), "--model="),
                "loc'al'" => (format!("agentctl prompt --model loc'al'/m{at}-"), ""),
                quote => (format!("agentctl prompt --model {quote}local/m{at}-"), ""),
            };
            let cannot_be_quoted = !shell.quotes_bangs && *quote == "\"" && payload.contains('!');
            let left_out = is_left_out(&payload) || cannot_be_quoted;
            let meant = if left_out { format!("local/m{at}-") } else { format!("local/m{at}-{payload}") };
            let after = if left_out && quote.len() == 1 { quote } else { "" };
            let words = interactive.words(&typed, after);
            let last = words.last().unwrap();
            assert_eq!(*last, format!("{before}{meant}"), "{} after {typed:?}: {words:?}", shell.program);
            assert!(!trap.ran(), "{}: {typed:?} ran the command", shell.program);
        }
        let typed = format!("agentctl fsck ./fm{at}-");
        let words = interactive.words(&typed, "");
        let meant = if is_left_out(&payload) { String::new() } else { payload };
        assert_eq!(words.last().unwrap(), &format!("./fm{at}-{meant}"), "{}: {words:?}", shell.program);
        assert!(!trap.ran(), "{}: {typed:?} ran the command", shell.program);
    }
}

/// Returns `true` for an installed shell. `tests/outside/shells` installs all.
fn is_installed(shell: &Shell) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(shell.program).is_file());
    assert!(is_there || std::env::var_os("AGENTD_E2E_ALL_SHELLS").is_none(), "there is no {}", shell.program);
    is_there
}

#[test]
fn bash_completes_nothing_that_it_runs() {
    completes_only_words(&BASH);
}

#[test]
fn zsh_completes_nothing_that_it_runs() {
    if is_installed(&ZSH) {
        completes_only_words(&ZSH);
    }
}

#[test]
fn fish_completes_nothing_that_it_runs() {
    if is_installed(&FISH) {
        completes_only_words(&FISH);
    }
}

/// A completed line runs, and the server receives a request for the model that it listed.
#[test]
fn a_completed_model_is_asked_for_by_its_name() {
    let trap = Trap::new();
    let mut interactive = Interactive::start(&trap.home, &BASH);
    interactive.terminal.press("agentctl prompt --model local/m0-\tHello; printf '\\nsa''id\\n'\n");
    interactive.terminal.wait_for("\nsaid\n");
    assert!(!trap.ran());
    let asked = &trap.server.requests()[0].body;
    assert_eq!(asked["model"], "m0-$(touch${IFS}ran)");
}

/// The common prefix of several completions is inserted without running any of it, and can be continued.
#[test]
fn several_that_fit_are_no_order_either() {
    let trap = Trap::new();
    for (name, at) in [("g$(touch ran)a", 0), ("g$(touch ran)b", 1), ("g h", 2)] {
        fs::write(trap.home.project().join(name), at.to_string()).unwrap();
    }
    let mut interactive = Interactive::start(&trap.home, &BASH);
    let words = interactive.words("agentctl fsck ./g\\$", "");
    assert_eq!(words.last().unwrap(), "./g$(touch ran)");
    let words = interactive.words("agentctl fsck ./g\\$\tb", "");
    assert_eq!(words.last().unwrap(), "./g$(touch ran)b");
    assert!(!trap.ran());
}
