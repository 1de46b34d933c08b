//! `agentctl`: the command line of agentd. Arguments in, exit code out.

mod cli;
mod commands;
mod exit;
mod output;
mod output_file;
mod private_daemon;
mod prompt_parts;
mod render;
mod rpc;
mod session_file;
mod shared_daemon;
mod terminal_size;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use clap_complete::CompleteEnv;
use rustix::{fs::Mode, process::umask};

use crate::{
    cli::Cli,
    exit::{Exit, print_stderr, print_stderr_coloured},
};

fn main() -> ExitCode {
    exit::print_panics_cleaned();
    keep_own_rights();
    // Answers the request of a shell's completion script and ends the program.
    let completing = CompleteEnv::with_factory(Cli::command).shells(commands::complete::SHELLS);
    completing.var(commands::complete::VARIABLE).complete();
    if commands::chat::is_meant_by_no_arguments() {
        return commands::chat::run(&cli::ChatOptions::default()).into();
    }
    let definition = cli::with_help(Cli::command());
    let matches = definition.clone().try_get_matches();
    if let Some(refused) =
        matches.as_ref().ok().and_then(|given| cli::empty_value_refusal(&definition, given))
    {
        print_stderr(&refused);
        return Exit::Usage.into();
    }
    let cli = match matches.and_then(|given| Cli::from_arg_matches(&given)) {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() {
                // The text quotes the arguments, which may be names of files.
                let text = error.render();
                print_stderr_coloured(&text.to_string(), &text.ansi().to_string());
                return Exit::Usage.into();
            }
            // Nothing is left to report to when even this cannot be printed.
            let _ = error.print();
            return Exit::Answered.into();
        }
    };
    match cli.command {
        cli::Command::Prompt(options) => commands::prompt::run(*options),
        cli::Command::Chat(options) => commands::chat::run(&options),
        cli::Command::Rpc(options) => commands::rpc::run(&options),
        cli::Command::Http(options) => commands::http::run(&options),
        cli::Command::Models(options) => commands::models::run(&options),
        cli::Command::Login(options) => commands::auth::login(options),
        cli::Command::Logout(options) => commands::auth::logout(&options),
        cli::Command::Auth(cli::Auth::Status(options)) => commands::auth::status(&options),
        cli::Command::History(options) => commands::history::history(&options),
        cli::Command::Sessions(options) => commands::sessions::list(&options),
        cli::Command::Resume(options) => commands::resume::run(&options),
        cli::Command::Name(options) => commands::name::run(&options),
        cli::Command::Attach(options) => commands::attach::run(&options),
        cli::Command::Watch(options) => commands::watch::run(&options),
        cli::Command::Top(options) => commands::top::run(&options),
        cli::Command::Steer(options) => commands::steer::run(&options),
        cli::Command::Abort(options) => commands::abort::run(&options),
        cli::Command::Ps(options) => commands::ps::run(&options),
        cli::Command::Jobs(cli::Jobs::List(options)) => commands::jobs::list(&options),
        cli::Command::Jobs(cli::Jobs::Output(options)) => commands::jobs::show_output(&options),
        cli::Command::Jobs(cli::Jobs::Kill(options)) => commands::jobs::kill(&options),
        cli::Command::Tools(options) => commands::tools::run(&options),
        cli::Command::Tree(options) => commands::tree::run(&options),
        cli::Command::Diff(options) => commands::undo::diff(&options),
        cli::Command::Undo(options) => commands::undo::undo(&options),
        cli::Command::Redo(options) => commands::undo::redo(&options),
        cli::Command::Fork(options) => commands::fork::run(&options),
        cli::Command::Export(options) => commands::export::run(&options),
        cli::Command::Fsck(options) => commands::fsck::run(&options),
        cli::Command::Usage(options) => commands::usage::run(&options),
        cli::Command::Artifact(options) => commands::artifact::run(&options),
        cli::Command::Completions(options) => commands::complete::run(&options),
        cli::Command::Man(options) => commands::man::run(&options),
        cli::Command::Version(options) => commands::version::run(&options),
        cli::Command::Rm(options) => commands::sessions::remove(&options),
        cli::Command::Clean(options) => commands::clean::run(&options),
        cli::Command::Up(options) => commands::up_down::up(&options),
        cli::Command::Down(options) => commands::up_down::down(&options),
        cli::Command::Status(options) => commands::status::status(&options),
        cli::Command::Logs(options) => commands::logs::logs(&options),
        cli::Command::Service(cli::Service::Install(options)) => commands::service::install(&options),
        cli::Command::Service(cli::Service::Uninstall(options)) => commands::service::uninstall(&options),
        cli::Command::Service(cli::Service::Status(options)) => commands::service::status(&options),
        cli::Command::Doctor(options) => commands::doctor::run(&options),
        cli::Command::BugReport(options) => commands::bug_report::run(&options),
        cli::Command::Config(cli::Config::Explain(options)) => commands::config::explain(&options),
        cli::Command::Config(cli::Config::Check(options)) => commands::config::check(&options),
        cli::Command::Mcp(cli::Mcp::Add(options)) => commands::mcp_edit::add(&options),
        cli::Command::Mcp(cli::Mcp::Remove(options)) => commands::mcp_edit::remove(&options),
        cli::Command::Mcp(cli::Mcp::Enable(options)) => commands::mcp_edit::enable(&options),
        cli::Command::Mcp(cli::Mcp::Disable(options)) => commands::mcp_edit::disable(&options),
        cli::Command::Mcp(cli::Mcp::List(options)) => commands::mcp::list(&options),
        cli::Command::Mcp(cli::Mcp::Test(options)) => commands::mcp::test(&options),
        cli::Command::Mcp(cli::Mcp::Login(options)) => commands::mcp_login::login(&options),
        cli::Command::Mcp(cli::Mcp::Logout(options)) => commands::mcp_login::logout(&options),
        cli::Command::Policy(cli::Policy::Check(options)) => commands::policy::check(&options),
        cli::Command::Policy(cli::Policy::Test(options)) => commands::policy::test(&options),
        cli::Command::Extensions(cli::Extensions::List(options)) => commands::extensions::list(&options),
        cli::Command::Extensions(cli::Extensions::Restart(options)) => {
            commands::extensions::restart(&options)
        }
        cli::Command::Extensions(cli::Extensions::Logs(options)) => commands::logs::of_extensions(&options),
        cli::Command::Extensions(cli::Extensions::New(options)) => commands::new_extension::new(&options),
        cli::Command::Install(options) => commands::packages::install(&options),
        cli::Command::Remove(options) => commands::packages::remove(&options),
        cli::Command::List(options) => commands::packages::list(&options),
        cli::Command::Update(options) => commands::packages::update(&options),
        cli::Command::Setup(cli::Setup::Local(options)) => commands::setup::local(&options),
    }
    .into()
}

/// Gives the user back their own rights in the umask: files that the user cannot read are of no use.
fn keep_own_rights() {
    let given = umask(Mode::RWXG | Mode::RWXO);
    umask(given - Mode::RWXU);
}
