//! `agentctl setup local`: finds a model server on this machine and writes it into `models.json`.

use agentd_protocol::doctor::{Listener, LocalProvider, LocalSetup, SetupChange, SetupLocalParams};

use super::{
    confirm::{self, EnterMeans},
    daemon_call,
};
use crate::{
    cli::SetupLocalOptions,
    exit::{Exit, Fault, conclude},
    output,
    render::{one_line, shell_word},
    rpc::SetupLocal,
};

/// How many models of a server are shown.
const SHOWN: usize = 10;

/// Has agentd look for servers and write what it finds.
pub(crate) fn local(options: &SetupLocalOptions) -> Exit {
    conclude(set_up(options))
}

fn set_up(options: &SetupLocalOptions) -> Result<Exit, Fault> {
    let params = |dry_run: bool, other_user: bool| SetupLocalParams {
        base_url: options.url.clone(),
        provider: options.provider.clone(),
        model: options.model.clone(),
        dry_run: dry_run.then_some(true),
        other_user: other_user.then_some(true),
    };
    let asks = !options.yes && !options.dry_run && !options.json && confirm::possible();
    if !asks {
        let setup = daemon_call::private::<SetupLocal>(&params(options.dry_run, options.other_user))?;
        return if options.json {
            output::print_json(&setup)
        } else {
            output::print(&format!("{}{}", found(&setup), ending(&setup, options.dry_run)))
        };
    }
    let planned = daemon_call::private::<SetupLocal>(&params(true, false))?;
    let printed = output::print(&found(&planned))?;
    if printed != Exit::Answered || !changes(&planned) {
        return if printed == Exit::Answered { output::print(&ending(&planned, false)) } else { Ok(printed) };
    }
    let question = format!("Write this to {}?", one_line(&planned.file));
    let others = planned.providers.iter().filter_map(|it| it.listener.as_ref()).any(|it| it.is_other_user);
    let enter = if others && !options.other_user { EnterMeans::No } else { EnterMeans::Yes };
    if !confirm::agreed(&question, enter)? {
        return Err(Fault::new(Exit::Failed, "Nothing was written."));
    }
    // The user agreed to exactly what was shown.
    let setup = daemon_call::private::<SetupLocal>(&params(false, others || options.other_user))?;
    output::print(&ending(&setup, false))
}

fn changes(setup: &LocalSetup) -> bool {
    setup.providers.iter().any(|provider| provider.change != SetupChange::Unchanged)
}

/// A few lines for each server that was found.
fn found(setup: &LocalSetup) -> String {
    setup.providers.iter().map(about).collect()
}

fn about(provider: &LocalProvider) -> String {
    let name = provider.server.as_deref().map_or_else(String::new, |name| format!(" (the port of {name})"));
    let what = match provider.change {
        SetupChange::Added => "new",
        SetupChange::Updated => "there already, with new models",
        SetupChange::Unchanged => "there already",
    };
    let mut text = format!(
        "Found {}{name}: provider {}, {what}\n",
        one_line(&provider.base_url),
        one_line(&provider.provider)
    );
    text.push_str(&provider.listener.as_ref().map(listener).unwrap_or_default());
    for model in provider.models.iter().take(SHOWN) {
        text.push_str(&format!("  {}\n", one_line(&format!("{}/{model}", provider.provider))));
    }
    if provider.models.len() > SHOWN {
        text.push_str(&format!("  and {} more\n", provider.models.len() - SHOWN));
    }
    if !provider.not_served.is_empty() {
        let ids = one_line(&provider.not_served.join(", "));
        text.push_str(&format!("  In models.json and not on the server (left as they are): {ids}\n"));
    }
    text
}

/// The line about the user who runs the server.
fn listener(listener: &Listener) -> String {
    let Listener { user_id, user, is_other_user, pid, program } = listener;
    let user = user.as_ref().map_or_else(|| format!("user {user_id}"), |name| one_line(name));
    match (is_other_user, pid) {
        (true, _) => format!(
            "  Another user listens there: {user} ({user_id}), who reads every conversation with these models\n"
        ),
        (false, Some(pid)) => {
            let program = program.as_deref().map(|name| format!("{} ", one_line(name))).unwrap_or_default();
            format!("  Run by {user}: {program}({pid})\n")
        }
        (false, None) => format!("  Run by {user}\n"),
    }
}

/// The text about the file, and the next command.
fn ending(setup: &LocalSetup, dry_run: bool) -> String {
    let file = one_line(&setup.file);
    if dry_run && changes(setup) {
        return format!("This was a dry run: nothing was written to {file}.\n");
    }
    let done = if setup.written {
        format!("Written to {file}.")
    } else {
        format!("{file} says all of this already.")
    };
    let first = setup.providers.iter().find_map(|provider| Some((provider, provider.models.first()?)));
    let next = first.map_or_else(String::new, |(provider, model)| {
        let model = shell_word(&one_line(&format!("{}/{model}", provider.provider)));
        format!("Try it:\n  agentctl prompt --model {model} \"What is in this folder?\"\n")
    });
    format!("{done}\n{next}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(change: SetupChange, models: usize, written: bool) -> LocalSetup {
        let provider = LocalProvider {
            provider: "local".into(),
            base_url: "http://127.0.0.1:11434/v1".into(),
            server: Some("Ollama".into()),
            listener: None,
            models: (1..=models).map(|n| format!("m{n}:8b")).collect(),
            change,
            not_served: if models > 1 { vec!["old".into()] } else { Vec::new() },
        };
        LocalSetup { file: "/a/models.json".into(), written, providers: vec![provider] }
    }

    #[test]
    fn says_what_was_found_and_the_next_command() {
        let setup = setup(SetupChange::Added, 1, true);
        assert_eq!(
            found(&setup) + &ending(&setup, false),
            "Found http://127.0.0.1:11434/v1 (the port of Ollama): provider local, new\n  local/m1:8b\nWritten to \
             /a/models.json.\nTry it:\n  agentctl prompt --model local/m1:8b \"What is in this folder?\"\n"
        );
        assert_eq!(ending(&setup, true), "This was a dry run: nothing was written to /a/models.json.\n");
    }

    #[test]
    fn says_who_listens() {
        let said = |is_other_user: bool, pid: Option<u32>| {
            let (user, program) = (Some("o\u{1b}llama".into()), pid.map(|_| "ser\nve".into()));
            listener(&Listener { user_id: 7, user, is_other_user, pid, program })
        };
        assert!(said(true, None).starts_with("  Another user listens there: o llama (7), who reads"));
        assert_eq!(said(false, Some(9)), "  Run by o llama: ser ve (9)\n");
        assert_eq!(said(false, None), "  Run by o llama\n");
    }

    #[test]
    fn long_lists_are_cut_and_old_models_named() {
        let setup = setup(SetupChange::Unchanged, 12, false);
        let text = found(&setup);
        assert!(text.contains("  and 2 more\n") && text.contains("left as they are): old\n"), "{text}");
        for dry_run in [true, false] {
            assert!(ending(&setup, dry_run).starts_with("/a/models.json says all of this already.\nTry it:"));
        }
    }
}
