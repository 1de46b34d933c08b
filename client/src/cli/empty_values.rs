//! Empty values. Scripts write `--ssh "$HOST"`, and the variable may not be set: it is not for us to say that the user meant
//! no host.

use clap::{ArgMatches, Command, parser::ValueSource};

/// Arguments that may be empty, by their ids: words of a message, texts to look for, and what means nothing wider when it is
/// empty than what would have stood there (no tools, no other models, the user's own model and prompt).
const MAY_BE_EMPTY: &[&str] = &[
    "words",
    "literal",
    "search",
    "pattern",
    "model",
    "fallback_models",
    "tools",
    "system_prompt",
    "append_system_prompt",
    // Flags of agentd, which looks at them itself.
    "args",
];

/// The refusal of the first empty value that is not allowed.
pub(crate) fn refusal(command: &Command, matches: &ArgMatches) -> Option<String> {
    let (mut command, mut matches, mut name) = (command, matches, command.get_name().to_owned());
    loop {
        let empty = command.get_arguments().find(|arg| {
            let id = arg.get_id().as_str();
            !MAY_BE_EMPTY.contains(&id)
                && matches.value_source(id) == Some(ValueSource::CommandLine)
                && matches
                    .try_get_raw(id)
                    .is_ok_and(|values| values.is_some_and(|mut values| values.any(|value| value.is_empty())))
        });
        if let Some(arg) = empty {
            let what = match arg.get_long() {
                Some(long) => format!("--{long}"),
                None => arg
                    .get_value_names()
                    .and_then(|names| names.first())
                    .map_or_else(|| arg.get_id().to_string(), ToString::to_string),
            };
            return Some(format!(
                "{name}: {what} is empty (a variable that is not set?): give it a value, or leave it out."
            ));
        }
        let (verb, below) = matches.subcommand()?;
        command = command.find_subcommand(verb)?;
        (matches, name) = (below, format!("{name} {verb}"));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{ArgAction, CommandFactory};

    use super::*;
    use crate::cli::Cli;

    fn said(args: &[&str]) -> Option<String> {
        let args = ["agentctl"].iter().chain(args);
        refusal(&Cli::command(), &Cli::command().try_get_matches_from(args).unwrap())
    }

    #[test]
    fn what_is_empty_is_refused() {
        for (args, what) in [
            (&["prompt", "--ssh", "", "x"][..], "agentctl prompt: --ssh is empty"),
            (&["prompt", "--ssh=", "x"], "agentctl prompt: --ssh is empty"),
            (&["prompt", "--session-dir", "", "x"], "agentctl prompt: --session-dir is empty"),
            (&["prompt", "--provider", "", "--model", "m", "x"], "agentctl prompt: --provider is empty"),
            (&["rm", "a", ""], "agentctl rm: "),
            (&["setup", "local", "--url", ""], "agentctl setup local: --url is empty"),
        ] {
            assert!(said(args).is_some_and(|text| text.starts_with(what)), "{args:?}: {:?}", said(args));
        }
        for args in [
            &["prompt", "", "--model", "", "--tools", ""][..],
            &["prompt", "x", "--", ""],
            &["rpc", "--", "--model", ""],
            &["models", ""],
        ] {
            assert_eq!(said(args), None, "{args:?}");
        }
    }

    #[test]
    fn what_may_be_empty_is_there() {
        fn ids(command: &Command, all: &mut BTreeSet<String>) {
            let takes_value = |action: &ArgAction| matches!(action, ArgAction::Set | ArgAction::Append);
            let args = command.get_arguments().filter(|arg| takes_value(arg.get_action()));
            all.extend(args.map(|arg| arg.get_id().to_string()));
            command.get_subcommands().for_each(|below| ids(below, all));
        }
        let mut all = BTreeSet::new();
        ids(&Cli::command(), &mut all);
        assert!(MAY_BE_EMPTY.iter().all(|id| all.contains(*id)), "{all:?}");
    }
}
