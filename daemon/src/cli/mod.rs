//! The command line of `agentd`: flags in, options out. The same parser reads the session flags that a client sends.
//!
//! The flags are read by hand, and not by `clap` as those of `agentctl`, since pi prescribes forms that clap cannot express: names of
//! two and three letters after one dash (`-xt`, `-nbt`), values that look like flags (`-t -bash`), a message after `-p` that begins
//! with `---`, an optional value of `--list-models` that ends at the next `@file`, and empty values that count as not given only where
//! `--compat pi` stands anywhere on the line. One table (`flag_table`) lists every flag; tests hold parser, table and help together.

mod flag_table;
mod flags;
mod help;
mod host;
mod invocation;
mod options;

use std::path::Path;

use agentd_config::Environment;

use self::flags::{Flags, ModeFlag};
pub use self::{
    flag_table::field_of,
    help::HELP,
    invocation::{
        BridgeOptions, HostOptions, HostProtocol, Invocation, Mode, OnEof, OneShotFormat, OneShotOptions,
        ServeOptions, StdioOptions,
    },
};

/// The word after `agentd acp` by which an editor lets the user log in.
const LOGIN: &str = "login";

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
    let mut flags = Flags::of_program(program);
    let serve = args.first().is_some_and(|first| first == "serve");
    let acp = args.first().is_some_and(|first| first == "acp");
    let mcp = args.first().is_some_and(|first| first == "mcp");
    let is_mcp_server = mcp && args.get(1).is_some_and(|second| second == "serve");
    if mcp && !is_mcp_server && !args.iter().any(|arg| arg == "--help" || arg == "-h") {
        return Err("Error: `agentd mcp serve` is an MCP server on stdin and stdout; MCP servers for sessions are managed by \
                    `agentctl mcp`."
            .into());
    }
    let words = &args[usize::from(serve || acp || mcp) + usize::from(is_mcp_server)..];
    flags.read(words)?;
    if acp {
        flags.mode = Some(ModeFlag::Acp);
    }
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
    if let Some((input, output)) = flags.export {
        return Ok(Invocation::Export { input, output });
    }
    if flags.bug_report {
        return Ok(Invocation::BugReport { compat: flags.compat });
    }
    if flags.fsck {
        return Ok(Invocation::Fsck { compat: flags.compat });
    }
    if flags.policy_check {
        return Ok(Invocation::PolicyCheck { compat: flags.compat });
    }
    if flags.mcp_edit {
        return Ok(Invocation::McpEdit { compat: flags.compat });
    }
    if flags.packages {
        return Ok(Invocation::Packages { compat: flags.compat });
    }
    if flags.usage {
        return Ok(Invocation::Usage { compat: flags.compat });
    }
    let mode = if is_mcp_server { flags.mcp_mode()? } else { flags.mode(serve)? };
    if flags.shared && mode == Mode::Serve {
        return Err("Error: --shared is for --stdio, acp and mcp serve: `agentd --stdio --shared` serves stdin and stdout with a session \
                    of the daemon."
            .into());
    }
    match mode {
        Mode::Serve => {
            return flags.into_serve(cwd, environment).map(|options| Invocation::Serve(Box::new(options)));
        }
        Mode::OneShot(format) => {
            let options = flags.into_one_shot(format, cwd, environment)?;
            return Ok(Invocation::OneShot(Box::new(options)));
        }
        Mode::Host(HostProtocol::Acp) if flags.messages.first().is_some_and(|word| word == LOGIN) => {
            return Ok(Invocation::LogIn { words: flags.messages.split_off(1) });
        }
        Mode::Host(protocol) => {
            let options = flags.into_host(protocol, words, cwd, environment)?;
            return Ok(Invocation::Host(protocol, Box::new(options)));
        }
        Mode::Stdio => {}
    }
    if flags.shared {
        flags.check_own_process()?;
        let compat = flags.compat;
        // Finds mistakes in the flags before a daemon is started.
        let StdioOptions { ready, warnings, .. } = flags.into_stdio(cwd, environment)?;
        let (args, cwd) = (args.to_vec(), cwd.to_owned());
        return Ok(Invocation::Bridge(Box::new(BridgeOptions { args, cwd, compat, ready, warnings })));
    }
    flags.into_stdio(cwd, environment).map(|options| Invocation::Stdio(Box::new(options)))
}

/// Reads the flags of a session that a client sends, as those of `agentd --stdio` in that folder and environment.
///
/// # Errors
/// A sentence, as of [`parse`].
pub fn parse_session(args: &[String], cwd: &Path, environment: Environment) -> Result<StdioOptions, String> {
    let mut flags = Flags::of_program("agentd");
    flags.read(args)?;
    if flags.help
        || flags.version
        || flags.list_models.is_some()
        || flags.export.is_some()
        || flags.bug_report
        || flags.fsck
        || flags.policy_check
        || flags.mcp_edit
        || flags.packages
        || flags.usage
    {
        return Err(
            "Error: --help, --version, --list-models, --export, --bug-report, --fsck, --policy-check, --mcp-edit, --packages and \
             --usage are no flags of a session."
                .into(),
        );
    }
    flags.check_own_process()?;
    let is_one_shot = match flags.mode {
        Some(mode) => mode != ModeFlag::Rpc,
        None => flags.print,
    };
    if is_one_shot {
        return Err(
            "Error: -p and --mode text, json or acp are no flags of a session: prompts come as commands."
                .into(),
        );
    }
    flags.into_stdio(cwd, environment)
}

#[cfg(test)]
mod every_flag;
#[cfg(test)]
mod tests;
