//! The flags of `agentd acp` and `agentd mcp serve`, and those of their sessions among them.

use std::path::Path;

use agentd_config::Environment;

use super::{
    flag_table::FLAGS,
    flags::Flags,
    invocation::{HostOptions, HostProtocol},
};

impl Flags {
    /// `args` are the words of the command line without the subcommand.
    pub(super) fn into_host(
        mut self,
        protocol: HostProtocol,
        args: &[String],
        cwd: &Path,
        environment: Environment,
    ) -> Result<HostOptions, String> {
        self.check_host(protocol)?;
        if self.shared {
            self.check_own_process()?;
        }
        self.check_session()?;
        let (shared, warnings) = (self.shared, std::mem::take(&mut self.warnings));
        let base = self.into_session(cwd, environment)?;
        Ok(HostOptions { base, session_args: session_args(args), shared, warnings })
    }

    /// Refuses flags that name a session: the host says which one it wants.
    fn check_host(&self, protocol: HostProtocol) -> Result<(), String> {
        let about_one = [
            ("--continue", self.continue_last),
            ("--session", self.session.is_some()),
            ("--session-id", self.session_id.is_some()),
            ("--prefer", self.preferred.is_some()),
            ("--fork", self.fork.is_some()),
            ("--name", self.name.is_some()),
            ("--on-eof", self.on_eof.is_some()),
            ("--ready", self.ready),
            ("--cumulative-updates", self.cumulative),
        ];
        let given = about_one.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag.to_owned());
        let words =
            || self.messages.first().cloned().or_else(|| self.files.first().map(|it| format!("@{it}")));
        match given.or_else(words) {
            Some(given) => {
                let (command, host) = match protocol {
                    HostProtocol::Acp => ("agentd acp", "the editor"),
                    HostProtocol::Mcp => ("agentd mcp serve", "the MCP client"),
                };
                Err(format!(
                    "Error: {given} does not go with `{command}`: {host} opens the sessions and sends the prompts. Flags of \
                     the model, the tools and the guard rails count for all of them."
                ))
            }
            None => Ok(()),
        }
    }
}

/// Flags that are about the process, and not about each of its sessions.
const OF_PROCESS: &[&str] = &[
    "--mode",
    "--stdio",
    "--shared",
    "--compat",
    "--record",
    "--replay",
    "--replay-match",
    "--replay-timing",
];

/// The flags of a session among the words of the command line, in their order.
fn session_args(args: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let (flag, inline) = match arg.split_once('=') {
            Some((flag, _)) if flag.starts_with("--") => (flag, true),
            _ => (arg.as_str(), false),
        };
        let row = FLAGS.iter().find(|row| row.names.contains(&flag));
        let value = if row.is_some_and(|row| row.takes_value()) && !inline { args.next() } else { None };
        if !OF_PROCESS.contains(&flag) {
            kept.push(arg.clone());
            kept.extend(value.cloned());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_process_are_left_out_with_their_values() {
        let kept = |line: &str| {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            session_args(&args).join(" ")
        };
        assert_eq!(kept("--mode acp --model m --shared"), "--model m");
        assert_eq!(kept("--mode=acp --model=m --record d --demo"), "--model=m --demo");
        assert_eq!(kept("--append-system-prompt --mode -t -bash"), "--append-system-prompt --mode -t -bash");
    }
}
