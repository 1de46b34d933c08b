//! The command line: a file for each family of verbs.

mod chat;
mod daemon;
mod empty_values;
mod extensions;
mod guard_rails;
mod help;
mod history;
mod http;
mod jobs;
mod mcp;
mod mcp_edit;
mod models;
mod packages;
mod policy;
mod prompt;
mod service;
mod session_files;
mod sessions;
mod setup;
mod top;
mod undo;
mod usage;
mod work;

use clap::{Parser, Subcommand};

/// The flags of agentd that give new sessions the tool `task`, commands that can be jobs, language servers, the web, and the tools `ast_grep`
/// and `ast_edit`, unless the settings say no.
pub(crate) const SESSION_FLAGS: [&str; 5] = ["--task", "--async", "--lsp", "--web", "--syntax"];

pub(crate) use self::{
    chat::ChatOptions,
    daemon::{DaemonChoice, DownOptions, LogsOptions, StatusOptions, UpOptions},
    empty_values::refusal as empty_value_refusal,
    extensions::{
        ExtensionLanguage, Extensions, ExtensionsListOptions, ExtensionsLogsOptions,
        ExtensionsRestartOptions, NewExtensionOptions,
    },
    guard_rails::GuardRailOptions,
    help::with_help,
    history::HistoryOptions,
    http::HttpOptions,
    jobs::{Jobs, JobsKillOptions, JobsListOptions, JobsOutputOptions},
    mcp::{Mcp, McpListOptions, McpLoginOptions, McpLogoutOptions, McpTestOptions},
    mcp_edit::{McpAddOptions, McpDisableOptions, McpEnableOptions, McpEntryOptions, McpRemoveOptions},
    models::{Auth, AuthStatusOptions, LoginOptions, LogoutOptions, ModelsOptions},
    packages::{InstallOptions, ListOptions, PackageOptions, UninstallOptions, UpdateOptions},
    policy::{Policy, PolicyCheckOptions, PolicyTestOptions},
    prompt::{PromptOptions, RpcOptions},
    service::{Service, ServiceInstallOptions, ServiceKind, ServiceStatusOptions, ServiceUninstallOptions},
    session_files::{
        ArtifactOptions, BugReportOptions, CleanOptions, ExportFormat, ExportOptions, FsckOptions,
    },
    sessions::{
        AttachOptions, ForkOptions, NameOptions, RemoveOptions, ResumeOptions, SessionsOptions, TreeOptions,
    },
    setup::{
        CheckOptions, CompletionsOptions, Config, DoctorOptions, ExplainOptions, ManOptions, Setup,
        SetupLocalOptions, Shell, VersionOptions,
    },
    top::{TopOptions, TopSort},
    undo::{DiffOptions, RedoOptions, UndoOptions},
    usage::UsageOptions,
    work::{AbortOptions, PsOptions, SteerOptions, ToolsOptions, WatchOptions},
};

/// `agentctl`.
#[derive(Debug, Parser)]
#[command(name = "agentctl", version, about = "Talk to agentd, the coding-agent daemon, from the shell")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a prompt; the answer goes to stdout, tool activity to stderr
    #[command(visible_aliases = ["run", "exec"])]
    Prompt(Box<PromptOptions>),

    /// Talk to a session on the whole terminal; leaving stops nothing. A bare agentctl does the same
    Chat(Box<ChatOptions>),

    /// Pass JSON Lines through to a session: commands on stdin, answers and events on stdout
    Rpc(RpcOptions),

    /// Answer prompts over HTTP, by server-sent events
    Http(HttpOptions),

    /// List models: what they cost, what they can do, and whether there is a key for them
    Models(ModelsOptions),

    /// Store a provider's API key; it is typed without being shown, or piped in
    Login(LoginOptions),

    /// Remove what is stored for a provider
    Logout(LogoutOptions),

    /// Show where the keys of providers come from
    #[command(subcommand)]
    Auth(Auth),

    /// List conversations, the last used first; + is in the daemon's memory, * is at work
    #[command(visible_alias = "ls")]
    Sessions(SessionsOptions),

    /// Find prompts that were sent to any session, or delete them
    History(HistoryOptions),

    /// Go on with a conversation: pick it from a list, or say some words of it
    Resume(ResumeOptions),

    /// Give a conversation a name
    Name(NameOptions),

    /// Follow a session and talk to it; leaving stops nothing
    Attach(AttachOptions),

    /// Print what the sessions in the daemon's memory do, as it happens
    Watch(WatchOptions),

    /// Show the sessions in the daemon's memory as a live table: state, model, tokens per second, cost
    Top(TopOptions),

    /// Send a message to a session at work
    Steer(SteerOptions),

    /// Stop the work of a session
    Abort(AbortOptions),

    /// List the processes that work for sessions
    Ps(PsOptions),

    /// List what works for sessions beside their runs, print its output, end it
    #[command(subcommand)]
    Jobs(Jobs),

    /// List the tools of a session, and choose those that the model can call
    Tools(ToolsOptions),

    /// Show the branches of a conversation
    Tree(TreeOptions),

    /// Show what the agent changed in files, as a diff (for sessions with --undo on)
    Diff(DiffOptions),

    /// Undo the changes of the last prompt; again: of the one before
    Undo(UndoOptions),

    /// Undo the last undo
    Redo(RedoOptions),

    /// Copy a conversation up to a point into one of its own
    Fork(ForkOptions),

    /// Write a conversation to a file, or to stdout
    Export(ExportOptions),

    /// Check session files, and write repaired copies of damaged ones
    Fsck(FsckOptions),

    /// Show what sessions spent: money, tokens, answers, tool calls
    Usage(UsageOptions),

    /// Print a long output of a conversation, or list them
    Artifact(ArtifactOptions),

    /// Delete conversations and their files
    Rm(RemoveOptions),

    /// Remove long outputs of commands that are old, or too much together; conversations stay
    Clean(CleanOptions),

    /// Start the daemon in the background, unless it runs already, and wait until it answers
    Up(UpOptions),

    /// End the daemon: it finishes its work first
    Down(DownOptions),

    /// Show whether the daemon runs, and its state
    Status(StatusOptions),

    /// Print the log of the daemon in the background
    Logs(LogsOptions),

    /// Let systemd or launchd start the daemon
    #[command(subcommand)]
    Service(Service),

    /// Check everything that a session needs: folders, settings, keys, models, shell, model servers
    Doctor(DoctorOptions),

    /// Write all that a maintainer needs about a fault of a session into one file, without secrets
    BugReport(BugReportOptions),

    /// Show where a setting comes from, and problems in the files that configure sessions
    #[command(subcommand)]
    Config(Config),

    /// Say what the permissions make of a command, without running it
    #[command(subcommand)]
    Policy(Policy),

    /// Add, remove and try the MCP servers whose tools sessions have
    #[command(subcommand)]
    Mcp(Mcp),

    /// Show the extensions of a session, restart them, read their log, or make a new one
    #[command(subcommand)]
    Extensions(Extensions),

    /// Install a package of skills, prompt templates and extensions, and add it to the settings
    Install(InstallOptions),

    /// Remove a package, and take it out of the settings
    Remove(UninstallOptions),

    /// List the packages of the settings
    List(ListOptions),

    /// Bring packages to their newest versions
    Update(UpdateOptions),

    /// Write the configuration for something that is installed already
    #[command(subcommand)]
    Setup(Setup),

    /// Print the script that makes a shell complete verbs, flags and ids of sessions
    Completions(CompletionsOptions),

    /// Print the manual page of a verb, or write all of them
    Man(ManOptions),

    /// Print the versions of agentctl, agentd, the running daemon and the protocol
    Version(VersionOptions),
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
    fn every_verb_shows_examples_of_itself() {
        fn check(command: &clap::Command, words: &str) {
            if command.has_subcommands() {
                return command.get_subcommands().for_each(|below| {
                    check(below, &format!("{words} {}", below.get_name()));
                });
            }
            let help = command.clone().render_long_help().to_string();
            let examples = help.split_once("\nExamples:\n").map(|(_, examples)| examples);
            let examples = examples.unwrap_or_else(|| panic!("no examples in {words}\n{help}"));
            assert!(examples.split("\n\n").next().unwrap().contains(words), "{words}\n{help}");
            assert!(help.contains("\nExit codes:\n"), "{words}\n{help}");
        }
        let mut cli = Cli::command();
        cli = cli.disable_help_subcommand(true);
        check(&cli, "agentctl");
    }

    #[test]
    fn help_documents_the_exit_codes() {
        let help = Cli::command().find_subcommand_mut("prompt").unwrap().render_long_help().to_string();
        for code in ["0 ", "1 ", "2 ", "3 ", "130", "141", "143"] {
            assert!(help.contains(code), "{code} is missing in\n{help}");
        }
    }
}
