//! The command line.

use std::path::PathBuf;

use agentd_protocol::model::ThinkingLevel;
use clap::{Args, Parser, Subcommand, builder::PossibleValuesParser};

/// `agentctl`.
#[derive(Debug, Parser)]
#[command(name = "agentctl", version, about = "Talk to agentd, the coding-agent daemon, from the shell")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a prompt; the answer goes to stdout, tool activity to stderr
    Prompt(Box<PromptOptions>),

    /// List models: what they cost, what they can do, and whether there is a key for them
    Models(ModelsOptions),

    /// Store a provider's API key; it is typed without being shown, or piped in
    Login(LoginOptions),

    /// Remove what is stored for a provider
    Logout(LogoutOptions),

    /// Where the keys of providers come from
    #[command(subcommand)]
    Auth(Auth),

    /// List conversations, the last used first; + is in the daemon's memory, * is at work
    Sessions(SessionsOptions),

    /// Follow a session in the daemon's memory, and talk to it; leaving stops nothing
    Attach(AttachOptions),

    /// Delete conversations: their files are gone
    Rm(RemoveOptions),

    /// Start the daemon in the background, unless it runs already, and wait until it answers
    #[command(after_help = "Exit codes:\n  0    it runs\n  3    it is missing or did not start")]
    Up,

    /// End the daemon: it finishes its work first
    Down(DownOptions),

    /// Whether the daemon runs, and how it is
    Status(StatusOptions),

    /// What the daemon in the background has said
    Logs(LogsOptions),

    /// Check everything that a session needs: folders, settings, keys, models, shell, model servers
    Doctor(DoctorOptions),

    /// Write configuration for something that is there already
    #[command(subcommand)]
    Setup(Setup),
}

const PROMPT_HELP: &str = "\
Examples:
  agentctl prompt \"What is in this folder?\"
  agentctl prompt \"Explain this code.\" @src/main.rs
  git diff | agentctl prompt \"Review this change.\"
  agentctl prompt --continue \"And the tests?\"

What is piped in comes first, then the files, then the words of MESSAGE.

Exit codes:
  0    the model answered
  1    the model or the run failed, the answer was cut off at the model's output limit, or agentd
       refused to start (an unknown model or session)
  2    the command line cannot be used (an unknown flag, a missing file, no message)
  3    agentd is missing, broke down, or was killed
  129, 130, 143    stopped by SIGHUP, Ctrl-C, SIGTERM; a second Ctrl-C does not wait for the run to stop
  141  stdout was closed by its reader";

/// The flags of `agentctl prompt`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = PROMPT_HELP)]
pub(crate) struct PromptOptions {
    /// The message (its words are joined by spaces), and files to send along as @PATH
    #[arg(value_name = "MESSAGE|@FILE")]
    pub(crate) words: Vec<String>,

    /// Words of the message that are taken as they are, even when they begin with - or @
    #[arg(last = true, value_name = "TEXT")]
    pub(crate) literal: Vec<String>,

    /// Print the session's events as JSON Lines to stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// The model: provider/id, an id or a part of one; with an optional :THINKING
    #[arg(long, value_name = "PATTERN")]
    pub(crate) model: Option<String>,

    /// The provider that --model is looked up in
    #[arg(long, value_name = "NAME", requires = "model")]
    pub(crate) provider: Option<String>,

    /// How hard the model thinks
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(ThinkingLevel::ALL.map(ThinkingLevel::as_str)))]
    pub(crate) thinking: Option<String>,

    /// Go on with the most recent session of the folder
    #[arg(short, long = "continue")]
    pub(crate) continue_last: bool,

    /// Go on with this session: a session file, or the id of a session or its beginning
    #[arg(long, value_name = "PATH|ID")]
    pub(crate) session: Option<String>,

    /// The folder of session files
    #[arg(long, value_name = "DIR")]
    pub(crate) session_dir: Option<String>,

    /// Do not save the session
    #[arg(long)]
    pub(crate) no_session: bool,

    /// The folder to work in, in the place of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// The tools that the model may call (names with commas between), or changes of the default (+NAME, -NAME)
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) tools: Option<String>,

    /// In the place of the built-in system prompt: a text, or a file that holds it
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) system_prompt: Option<String>,

    /// After the system prompt: a text, or a file that holds it; repeatable
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) append_system_prompt: Vec<String>,
}

const MODELS_HELP: &str = "\
Examples:
  agentctl models                 those that can be used now
  agentctl models sonnet          every model with this in its id or name
  agentctl models 'openai/gpt-*'  a glob over provider/id; * does not cross a /
  agentctl models --all --json    everything, for programs

Prices are US dollars per million tokens. Exit code 1: nothing to list.";

/// The flags of `agentctl models`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = MODELS_HELP)]
pub(crate) struct ModelsOptions {
    /// Only models whose provider/id or name holds this text, or matches this glob; also those without a key
    #[arg(value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,

    /// List models without a key too
    #[arg(long)]
    pub(crate) all: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const LOGIN_HELP: &str = "\
Examples:
  agentctl login anthropic                 asks for the key
  agentctl login openai < key.txt          takes it from a file
  pass show openai | agentctl login openai
  agentctl login cloudflare-workers-ai --env CLOUDFLARE_ACCOUNT_ID=0123

The key goes into auth.json of the agent directory, which only you can read, and counts at once. It
comes before keys of the environment and of models.json.

Exit codes:
  0    it is stored
  1    the provider is not known, or auth.json cannot be used or written
  2    there is no key";

/// The flags of `agentctl login`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOGIN_HELP)]
pub(crate) struct LoginOptions {
    /// The provider, such as anthropic or openai (agentctl models --all lists them)
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: String,

    /// A key by mistake: taken so that it can be refused without being repeated
    #[arg(hide = true, num_args = 0.., allow_hyphen_values = true)]
    pub(crate) key: Vec<String>,

    /// A variable that belongs to the key, such as an account; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,

    /// Store it for a provider that is not known, and in the place of another kind of login
    #[arg(long)]
    pub(crate) force: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl logout`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Exit code 1: nothing is stored for it, or auth.json cannot be used or written.")]
pub(crate) struct LogoutOptions {
    /// The provider
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: String,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What can be asked about keys.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Auth {
    /// Where the key of each provider comes from; keys themselves are never shown
    Status(AuthStatusOptions),
}

/// The flags of `agentctl auth status`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Exit code 1: no provider has a key that can be used, or not the one that was asked for."
)]
pub(crate) struct AuthStatusOptions {
    /// Only this provider
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const SESSIONS_HELP: &str = "\
Examples:
  agentctl sessions               the last 20, of every folder
  agentctl sessions --here        those of this folder
  agentctl sessions zebra         those that say zebra anywhere
  agentctl prompt --session ID    go on with one

Exit code 1: no session fits.";

/// The flags of `agentctl sessions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SESSIONS_HELP)]
pub(crate) struct SessionsOptions {
    /// Only those with this text in their id, name, folder or messages
    #[arg(value_name = "TEXT")]
    pub(crate) search: Option<String>,

    /// Only those of the current folder
    #[arg(long)]
    pub(crate) here: bool,

    /// Only those in the memory of the daemon
    #[arg(long)]
    pub(crate) live: bool,

    /// At most so many
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,

    /// Where the list before ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl attach`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "What is typed is a prompt, or steers the work that is under way. Ctrl-D and Ctrl-C leave the session alone."
)]
pub(crate) struct AttachOptions {
    /// The id of a live session, or its beginning
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Only look
    #[arg(long)]
    pub(crate) observe: bool,
}

/// The flags of `agentctl rm`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Exit code 1: there is no such session, or it is in use.")]
pub(crate) struct RemoveOptions {
    /// The whole ids of sessions (agentctl sessions --json has them)
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// The flags of `agentctl down`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Exit codes:\n  0    it has ended, or did not run\n  1    it has not ended in time\n  \
                        3    it does not answer"
)]
pub(crate) struct DownOptions {
    /// Stop work instead of letting it finish
    #[arg(long)]
    pub(crate) abort: bool,

    /// How long work has to finish before it is stopped
    #[arg(long, value_name = "SECONDS", conflicts_with = "abort", value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub(crate) deadline: Option<u64>,
}

/// The flags of `agentctl status`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Exit codes:\n  0    it runs\n  1    it does not run\n  3    it does not answer")]
pub(crate) struct StatusOptions {
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl logs`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "The log is logs/agentd.log in the agent directory. AGENTD_LOG at `agentctl up` sets what goes into it.\n\
                        Exit code 1: there is none."
)]
pub(crate) struct LogsOptions {
    /// Go on with what is added, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// So many lines of what is there already
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) lines: usize,
}

/// The flags of `agentctl doctor`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Nothing is changed, and nothing is asked of the network but a model listing of servers on this machine.\n\n\
                  Exit codes:\n  0    no problem (there can be warnings)\n  1    something does not work"
)]
pub(crate) struct DoctorOptions {
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What can be set up.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Setup {
    /// Use model servers of this machine: finds them and writes them into models.json
    Local(SetupLocalOptions),
}

const SETUP_LOCAL_HELP: &str = "\
Examples:
  agentctl setup local                                    look on the usual ports of this machine
  agentctl setup local --url http://127.0.0.1:9000/v1     this server
  agentctl setup local --dry-run                          only say what would be written

Everything else in models.json stays as it is. On a terminal you are asked before it is written.

Exit codes:
  0    the servers are in models.json (or would be, with --dry-run)
  1    no server was found, or models.json cannot be used or written";

/// The flags of `agentctl setup local`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = SETUP_LOCAL_HELP)]
pub(crate) struct SetupLocalOptions {
    /// The server, in the place of those on the usual ports
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// The provider's id in models.json, in the place of local, local-2 and so on
    #[arg(long, value_name = "ID")]
    pub(crate) provider: Option<String>,

    /// Only this model of the server
    #[arg(long, value_name = "ID")]
    pub(crate) model: Option<String>,

    /// Write without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    pub(crate) yes: bool,

    /// Only say what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the answer as JSON, without asking
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(args: &[&str]) -> Result<PromptOptions, clap::Error> {
        let cli = Cli::try_parse_from(["agentctl", "prompt"].iter().chain(args))?;
        let Command::Prompt(options) = cli.command else { panic!("not a prompt") };
        Ok(*options)
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_and_words_mix() {
        let options =
            parse(&["what", "-c", "--model", "a/b", "is", "@x", "--tools", "-bash", "--", "-v", "@y"])
                .unwrap();
        assert_eq!(options.words, ["what", "is", "@x"]);
        assert_eq!(options.literal, ["-v", "@y"]);
        assert_eq!(options.model.as_deref(), Some("a/b"));
        assert_eq!(options.tools.as_deref(), Some("-bash"));
        assert!(options.continue_last);
    }

    #[test]
    fn unusable_flags_are_refused() {
        for args in [&["--nope"][..], &["--thinking", "lots", "x"], &["--provider", "x", "y"]] {
            assert!(parse(args).unwrap_err().use_stderr(), "{args:?}");
        }
    }

    #[test]
    fn help_documents_the_exit_codes() {
        let help = Cli::command().find_subcommand_mut("prompt").unwrap().render_long_help().to_string();
        for code in ["0 ", "1 ", "2 ", "3 ", "130", "141", "143"] {
            assert!(help.contains(code), "{code} is missing in\n{help}");
        }
    }
}
