//! The command line of `agentd`: flags in, options out. The same parser reads the session flags that a client sends.

use std::path::{Path, PathBuf};

use agentd_auth::Secret;
use agentd_config::Environment;
use agentd_protocol::model::ThinkingLevel;
use agentd_session::{SessionOptions, Target, ToolSelection};

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// Serve one session on stdin and stdout.
    Stdio(Box<StdioOptions>),
    /// Print the version and end.
    Version {
        /// Only the version of the wire, as the reference prints it.
        bare: bool,
    },
    /// Print the models that can be used and end.
    ListModels {
        /// Only those that hold this text.
        search: Option<String>,
        /// Whether the reference's own directories come first.
        compat: bool,
    },
    /// Print the help and end.
    Help,
}

/// How to serve stdin and stdout.
#[derive(Debug)]
pub struct StdioOptions {
    /// The session to open.
    pub session: SessionOptions,
    /// What the end of the input means for work that is not done.
    pub on_eof: OnEof,
    /// What to tell the user on stderr before anything else.
    pub warnings: Vec<String>,
}

/// What the end of the input means for work that is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnEof {
    /// It is stopped.
    #[default]
    Abort,
    /// It is finished first.
    Drain,
}

/// What `--help` prints.
pub const HELP: &str = "\
agentd - the coding-agent daemon: sessions, tools and models behind JSON Lines

Usage: agentd --stdio [flags]          (--mode rpc is the same)

A host writes one JSON command per line to stdin and reads responses and events, one per line, from stdout.
For a prompt from the shell use `agentctl prompt \"...\"`.

Session
  -c, --continue                the most recent session of this folder, or a new one
      --session <path|id>       a session file, or the id (or its beginning) of a session
      --session-id <id>         exactly this id; a new session gets it
      --fork <path|id>          a copy of that session, in this folder
      --session-dir <dir>       the folder of session files
      --no-session              keep the session in memory only
  -n, --name <name>             name the session
Model
      --model <pattern>         id, part of an id or name, or provider/id; with an optional :<thinking>
      --provider <name>         the provider that --model is looked up in
      --models <a,b>            the models that cycle_model goes through
      --thinking <level>        off, minimal, low, medium, high, xhigh, max
      --api-key <key>           the key for the chosen model's provider
      --list-models [search]    print the models that can be used, and end
Prompt and tools
      --system-prompt <text|file>          in the place of the built-in prompt
      --append-system-prompt <text|file>   after the prompt; repeatable
  -t, --tools <list>            only these tools, or changes of the default (+name, -name)
 -xt, --exclude-tools <list>    without these tools
 -nt, --no-tools                without any tool
 -nc, --no-context-files        do not read AGENTS.md and CLAUDE.md files
  -a, --approve / -na, --no-approve    trust, or do not trust, the project's own settings
Daemon
      --on-eof abort|drain      what the end of stdin means for unfinished work (default: abort)
      --compat pi               directories and version of the reference come first
  -v, --version                 print the version
  -h, --help                    print this

Environment: AGENTD_DIR (default ~/.agentd) holds settings.json, models.json, auth.json and sessions/;
PI_CODING_AGENT_DIR and PI_CODING_AGENT_SESSION_DIR are honoured; AGENTD_LOG sets what is logged to stderr.
";

/// Reads the command line.
///
/// `program` is the name under which we were started: `pi` means `--compat pi`. `cwd` is the process's working
/// directory.
///
/// # Errors
/// A sentence for stderr; the exit code is 1.
pub fn parse(
    program: &str,
    args: &[String],
    cwd: &Path,
    environment: Environment,
) -> Result<Invocation, String> {
    let mut flags = Flags { compat: program == "pi", ..Flags::default() };
    flags.read(args)?;
    if flags.help {
        return Ok(Invocation::Help);
    }
    if flags.version {
        return Ok(Invocation::Version { bare: flags.compat });
    }
    if let Some(search) = flags.list_models {
        let search = Some(search).filter(|search| !search.is_empty());
        return Ok(Invocation::ListModels { search, compat: flags.compat });
    }
    if !flags.stdio {
        return Err(
            "Error: this version of agentd serves one session on stdin and stdout: start `agentd --stdio`, \
                    or use `agentctl prompt \"...\"` from the shell."
                .into(),
        );
    }
    flags.into_stdio(cwd, environment).map(|options| Invocation::Stdio(Box::new(options)))
}

#[derive(Debug, Default)]
struct Flags {
    compat: bool,
    stdio: bool,
    help: bool,
    version: bool,
    /// `--list-models`, with the text to search for or an empty one.
    list_models: Option<String>,
    on_eof: OnEof,
    continue_last: bool,
    session: Option<String>,
    session_id: Option<String>,
    session_dir: Option<String>,
    fork: Option<String>,
    no_session: bool,
    name: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    models: Option<Vec<String>>,
    api_key: Option<String>,
    thinking: Option<ThinkingLevel>,
    system_prompt: Option<String>,
    append_system_prompt: Vec<String>,
    tools: ToolSelection,
    no_context_files: bool,
    approve: Option<bool>,
    warnings: Vec<String>,
}

impl Flags {
    fn read(&mut self, args: &[String]) -> Result<(), String> {
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--" {
                // Messages on the command line are for the one-shot modes; this wire takes them as commands.
                break;
            }
            if let Some(path) = arg.strip_prefix('@') {
                return Err(format!("Error: @file arguments are not supported in RPC mode (got @{path})"));
            }
            if !arg.starts_with('-') {
                continue;
            }
            let (flag, inline) = match arg.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            if flag == "--list-models" {
                // Its value is optional: what follows and is no flag.
                let next = || args.clone().next().filter(|next| !next.starts_with('-')).cloned();
                self.list_models = Some(inline.clone().or_else(next).unwrap_or_default());
                continue;
            }
            let mut value = || {
                inline
                    .clone()
                    .or_else(|| args.next().cloned())
                    .ok_or_else(|| format!("Error: {flag} needs a value. `agentd --help` lists the flags."))
            };
            self.flag(flag, &mut value)?;
        }
        Ok(())
    }

    fn flag(&mut self, flag: &str, value: &mut dyn FnMut() -> Result<String, String>) -> Result<(), String> {
        match flag {
            "--stdio" => self.stdio = true,
            "--mode" => self.mode(&value()?)?,
            "--compat" => match value()?.as_str() {
                "pi" => self.compat = true,
                other => return Err(format!("Error: --compat knows only pi, got {other}")),
            },
            "--on-eof" => {
                self.on_eof = match value()?.as_str() {
                    "abort" => OnEof::Abort,
                    "drain" => OnEof::Drain,
                    other => return Err(format!("Error: --on-eof takes abort or drain, got {other}")),
                }
            }
            "-h" | "--help" => self.help = true,
            "-v" | "--version" => self.version = true,
            "-c" | "--continue" => self.continue_last = true,
            "--session" => self.session = Some(value()?),
            "--session-id" => self.session_id = Some(value()?),
            "--session-dir" => self.session_dir = Some(value()?),
            "--fork" => self.fork = Some(value()?),
            "--no-session" => self.no_session = true,
            "-n" | "--name" => self.name = Some(value()?),
            "--provider" => self.provider = Some(value()?),
            "--model" => self.model = Some(value()?),
            "--models" => self.models = Some(list(&value()?)),
            "--api-key" => self.api_key = Some(value()?),
            "--thinking" => self.thinking(&value()?),
            "--system-prompt" => self.system_prompt = Some(value()?),
            "--append-system-prompt" => self.append_system_prompt.push(value()?),
            "-t" | "--tools" => self.tools.allow = Some(list(&value()?)),
            "-xt" | "--exclude-tools" => self.tools.exclude = list(&value()?),
            "-nt" | "--no-tools" | "-nbt" | "--no-builtin-tools" => self.tools.none = true,
            "-nc" | "--no-context-files" => self.no_context_files = true,
            "-a" | "--approve" => self.approve = Some(true),
            "-na" | "--no-approve" => self.approve = Some(false),
            // Of use to the reference only; clients pass them all the same.
            "-e" | "--extension" | "--skill" | "--prompt-template" | "--theme" | "--use-theme"
            | "--tui-mode" => {
                value()?;
            }
            "-ne"
            | "--no-extensions"
            | "-ns"
            | "--no-skills"
            | "-np"
            | "--no-prompt-templates"
            | "--no-themes"
            | "--no-mcp"
            | "--offline"
            | "--verbose" => {}
            "-r" | "--resume" | "--export" | "-p" | "--print" => {
                return Err(format!("Error: {flag} is not part of this version of agentd."));
            }
            other => {
                return Err(format!("Error: Unknown option: {other}. `agentd --help` lists the flags."));
            }
        }
        Ok(())
    }

    fn mode(&mut self, mode: &str) -> Result<(), String> {
        match mode {
            "rpc" => self.stdio = true,
            "text" | "json" => {
                return Err(format!(
                    "Error: --mode {mode} is not part of this version of agentd; `agentctl prompt{}` does that.",
                    if mode == "json" { " --json" } else { "" }
                ));
            }
            other => return Err(format!("Error: Invalid mode \"{other}\". Valid values: text, json, rpc")),
        }
        Ok(())
    }

    /// As in the reference: an unknown level is a warning.
    fn thinking(&mut self, level: &str) {
        self.thinking = ThinkingLevel::from_name(level);
        if self.thinking.is_none() {
            let known = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
            self.warnings
                .push(format!("Warning: unknown thinking level \"{level}\" ignored; known: {known}"));
        }
    }

    fn into_stdio(self, cwd: &Path, environment: Environment) -> Result<StdioOptions, String> {
        if self.provider.is_some() && self.model.is_none() {
            let provider = self.provider.unwrap_or_default();
            return Err(format!(
                "Error: --provider requires --model (for example: --provider {provider} --model <pattern>)"
            ));
        }
        if self.api_key.is_some() && self.model.is_none() && self.models.is_none() {
            return Err(
                "Error: --api-key requires a model to be specified via --model, --provider/--model, or \
                        --models"
                    .into(),
            );
        }
        if self.fork.is_some() {
            let others = [
                ("--session", self.session.is_some()),
                ("--session-id", self.session_id.is_some()),
                ("--continue", self.continue_last),
                ("--no-session", self.no_session),
            ];
            if let Some((flag, _)) = others.into_iter().find(|(_, given)| *given) {
                return Err(format!("Error: --fork cannot be combined with {flag}"));
            }
        }
        let target = self.target();
        let session = SessionOptions {
            cwd: cwd.to_owned(),
            environment,
            compat: self.compat,
            target,
            session_dir: self.session_dir.map(PathBuf::from),
            name: self.name,
            provider: self.provider,
            model: self.model,
            models: self.models,
            api_key: self.api_key.map(Secret::new),
            thinking: self.thinking,
            system_prompt: self.system_prompt,
            append_system_prompt: self.append_system_prompt,
            tools: self.tools,
            no_context_files: self.no_context_files,
            approve: self.approve,
        };
        Ok(StdioOptions { session, on_eof: self.on_eof, warnings: self.warnings })
    }

    /// `--session` wins over `--continue`: clients that resume a session give both.
    fn target(&self) -> Target {
        if self.no_session {
            return Target::Ephemeral(self.session_id.clone());
        }
        if let Some(source) = &self.fork {
            return Target::Fork(source.clone());
        }
        match (&self.session, &self.session_id) {
            (Some(session), _) => Target::Existing(session.clone()),
            (None, Some(id)) => Target::Id(id.clone()),
            (None, None) if self.continue_last => Target::Continue,
            (None, None) => Target::New,
        }
    }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Invocation, String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        parse("agentd", &args, Path::new("/p"), Environment::default())
    }

    fn stdio(args: &[&str]) -> StdioOptions {
        match read(args).unwrap() {
            Invocation::Stdio(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_come_in_any_order_and_the_last_wins() {
        let options = stdio(&[
            "--model",
            "a",
            "-t",
            "read, bash",
            "--mode",
            "rpc",
            "--model",
            "b",
            "-xt",
            "bash",
            "--append-system-prompt",
            "x",
            "--append-system-prompt=y",
            "--no-themes",
            "--theme",
            "dark",
            "ignored",
        ]);
        assert_eq!(options.session.model.as_deref(), Some("b"));
        assert_eq!(options.session.append_system_prompt, ["x", "y"]);
        assert_eq!(options.session.tools.allow, Some(vec!["read".into(), "bash".into()]));
        assert_eq!(options.session.tools.exclude, ["bash"]);
        assert_eq!(options.session.target, Target::New);
    }

    #[test]
    fn targets() {
        assert_eq!(stdio(&["--stdio", "-c", "--session", "x"]).session.target, Target::Existing("x".into()));
        assert_eq!(stdio(&["--stdio", "-c"]).session.target, Target::Continue);
        assert_eq!(
            stdio(&["--stdio", "--no-session", "--session-id", "i"]).session.target,
            Target::Ephemeral(Some("i".into()))
        );
    }

    #[test]
    fn mistakes_are_named() {
        let check = |args: &[&str], part: &str| {
            let error = read(args).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check(&["--stdio", "--model"], "--model needs a value");
        check(&["--stdio", "--bogus"], "Unknown option: --bogus");
        check(&["--stdio", "-z"], "Unknown option: -z");
        check(&["--mode", "x"], "Invalid mode \"x\". Valid values: text, json, rpc");
        check(&["--stdio", "--provider", "p"], "--provider requires --model (for example: --provider p");
        check(&["--stdio", "--api-key", "k"], "--api-key requires a model");
        check(&["--stdio", "--fork", "x", "-c"], "--fork cannot be combined with --continue");
        check(&["--stdio", "@a.txt"], "@file arguments are not supported in RPC mode");
        check(&[], "agentd --stdio");
        assert_eq!(stdio(&["--stdio", "--thinking", "lots"]).warnings.len(), 1);
    }

    #[test]
    fn keys_are_not_printed() {
        let options = stdio(&["--stdio", "--model", "m", "--api-key", "sk-canary"]);
        assert!(!format!("{options:?}").contains("canary"));
    }
}
