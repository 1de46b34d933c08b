//! Rules that would allow what was asked about, and what is like it: offered to users as the answer "always".

use std::path::Path;

use agentd_protocol::{
    remote_hosts::SSH_TOOL,
    settings::{PermissionAction, PermissionRule},
};

use crate::{
    compiled::{Compiled, PolicyOptions},
    looks,
    rule::CompiledRule,
    shell::SimpleCommand,
    wrapper,
};

/// Programs that run whatever their arguments say: no prefix of theirs is safe.
const INTERPRETERS: &[&str] = &[
    "awk", "bash", "bun", "dash", "deno", "docker", "env", "gawk", "gdb", "kubectl", "lua", "make", "node",
    "npx", "perl", "php", "python", "python2", "python3", "rsync", "ruby", "sh", "ssh", "sudo", "tclsh",
    "uvx", "xargs", "zsh",
];

/// Programs whose first argument says what they do, and so is part of a rule.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "brew",
    "bundle",
    "cargo",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "hg",
    "jj",
    "mix",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "rails",
    "rustup",
    "svn",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// Programs that no single answer should allow for good.
const NEVER: &[&str] = &[
    "chmod", "chown", "curl", "dd", "kill", "killall", "mkfs", "mv", "nc", "pkill", "rm", "rmdir", "scp",
    "shred", "tee", "truncate", "unlink", "wget",
];

fn rule(tool: &str, command: Option<String>, path: Option<String>) -> PermissionRule {
    let action = PermissionAction::Allow;
    PermissionRule { tool: tool.to_owned(), command, path, domain: None, action, reason: None }
}

/// All calls of a tool.
pub(crate) fn for_tool(tool: &str) -> PermissionRule {
    rule(&tool.replace('*', "?"), None, None)
}

/// Pages of a host, and of those below it.
pub(crate) fn for_host(tool: &str, host: &str) -> PermissionRule {
    PermissionRule { domain: Some(host.replace('*', "?")), ..for_tool(tool) }
}

/// Writing in the folder of a file.
pub(crate) fn for_write(path: &Path, options: &PolicyOptions) -> Option<PermissionRule> {
    let folder = path.parent()?;
    let escaped = |text: &str| globset::escape(text);
    let pattern = match (folder.strip_prefix(&options.cwd), folder.strip_prefix(&options.home)) {
        (Ok(below), _) if below.as_os_str().is_empty() => return None,
        (Ok(below), _) => format!("./{}/**", escaped(&below.to_string_lossy())),
        // A whole home directory, or all of a disk, is no answer to one question.
        (_, Ok(below)) if below.as_os_str().is_empty() => return None,
        (_, Ok(below)) => format!("~/{}/**", escaped(&below.to_string_lossy())),
        _ if folder.parent().is_none() => return None,
        _ => format!("{}/**", escaped(&folder.to_string_lossy())),
    };
    Some(rule("write", None, Some(pattern)))
}

/// A prefix of the one simple command that was asked about; `None` where there are more, or no prefix is safe. `host` is the one that it
/// would run on, if it is another one: the rule is for that alone.
pub(crate) fn for_commands(
    policy: &Compiled,
    commands: &[SimpleCommand],
    host: Option<&str>,
) -> Option<PermissionRule> {
    // On another host, commands that only look are asked about, too.
    let mut asked = commands.iter().filter(|command| host.is_some() || !looks::only_looks(&command.words));
    let (command, None) = (asked.next()?, asked.next()) else { return None };
    if !command.redirections.is_empty()
        || !command.assignments.is_empty()
        || wrapper::unwrap(&command.words).is_some()
    {
        return None;
    }
    let texts: Option<Vec<&str>> = command.words.iter().take(3).map(|word| word.text()).collect();
    let texts = texts?;
    let (name, is_plain) = (*texts.first()?, |text: &&str| {
        !text.is_empty()
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./:@+".contains(letter))
    });
    if !is_plain(&name) || INTERPRETERS.contains(&name.rsplit('/').next()?) {
        return None;
    }
    let is_subcommand = |text: &&&str| is_plain(text) && !text.starts_with('-') && !text.contains(['/', '.']);
    let words: Vec<&str> = match texts.get(1) {
        _ if NEVER.contains(&name) => return None,
        _ if !WITH_SUBCOMMANDS.contains(&name) => vec![name],
        second => match second.filter(is_subcommand)? {
            &"run" => vec![name, "run", texts.get(2).filter(is_subcommand)?],
            second => vec![name, second],
        },
    };
    let words = words.join(" ");
    let suggestion = match host {
        None => rule("bash", Some(format!("{words} *")), None),
        Some(host) if is_plain(&host) => rule(SSH_TOOL, Some(format!("{host} {words} *")), None),
        Some(_) => return None,
    };
    // A rule that cannot change the verdict is no answer.
    let options = policy.options();
    CompiledRule::new(&suggestion, &options.cwd, &options.home).ok()?;
    Some(suggestion)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Policy, PolicyOptions, Subject};
    use agentd_protocol::settings::PermissionPreset;

    fn suggested(command: &str) -> Option<String> {
        let policy = Policy::new(PolicyOptions {
            preset: PermissionPreset::Workspace,
            project_preset: None,
            layers: Vec::new(),
            cwd: "/w".into(),
            folders: Vec::new(),
            home: "/h".into(),
        });
        let subject = Subject::Command { text: command, folder: Path::new("/w"), variables: &[] };
        policy.unwrap().decide("bash", subject).suggestion?.command
    }

    #[test]
    fn prefixes_say_what_a_command_does_and_no_more() {
        for (command, rule) in [
            ("cargo build --release", "cargo build *"),
            ("ls && npm run build -- x", "npm run build *"),
            ("touch made", "touch *"),
            ("./tools/check.sh a", "./tools/check.sh *"),
        ] {
            assert_eq!(suggested(command).as_deref(), Some(rule), "{command}");
        }
        for command in [
            "rm -rf x",
            "python3 x.py",
            "bash x",
            "cargo",
            "git -C x push",
            "make",
            "$X",
            "a | b",
            "a > /etc/x",
            "X=1 a",
        ] {
            assert_eq!(suggested(command), None, "{command}");
        }
    }
}
