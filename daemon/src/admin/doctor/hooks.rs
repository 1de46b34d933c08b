//! Shell hooks: which a session in this folder has, and what is wrong with the files that name them. None is run.

use std::path::Path;

use agentd_config::TrustBasis;
use agentd_hooks::{HookEvent, HookOptions, HookSet, HookSources, load};
use agentd_protocol::{doctor::Check, resources::Diagnostic};

use super::check::{CheckName, LoadedSetup, counted};
use crate::admin::Context;

const HOOKS: CheckName = CheckName("hooks", "shell hooks");

/// A check with the hooks of a session in this folder, and one for each mistake in the files; nothing where there are none of both.
pub(super) fn check(context: &Context, found: &LoadedSetup) -> Vec<Check> {
    let trust = &found.settings.trust;
    let is_trusted = trust.trusted && trust.basis != TrustBasis::NothingToTrust;
    let settings = &found.settings.settings;
    let sources = HookSources {
        agent_dir: &found.agent_dir,
        cwd: &context.cwd,
        project: is_trusted.then_some(&found.settings.folders),
        home: context.environment.non_empty("HOME").map(Path::new),
        is_in_settings: settings.hooks.is_some(),
        options: HookOptions::of(settings),
    };
    let mut diagnostics = Vec::new();
    let set = load(&sources, &mut diagnostics);
    let mistakes = diagnostics.into_iter().map(|it| {
        let advice =
            it.hint.clone().unwrap_or_else(|| "Correct it, or remove it; docs/hooks.md has the form.".into());
        HOOKS.warning(Diagnostic { hint: None, ..it }.to_string(), advice)
    });
    summary(&set).into_iter().chain(mistakes).collect()
}

fn summary(set: &HookSet) -> Option<Check> {
    let count = set.all().count();
    if count == 0 {
        return None;
    }
    let of_event = |event: &HookEvent| {
        let count = set.all().filter(|hook| hook.event() == *event).count();
        (count > 0).then(|| format!("{} {count}", event.name()))
    };
    let events: Vec<String> = HookEvent::ALL.iter().filter_map(of_event).collect();
    let mut files: Vec<String> = set.all().map(|hook| hook.origin().path.display().to_string()).collect();
    files.sort();
    files.dedup();
    Some(HOOKS.ok(format!("{} ({}), from {}", counted(count, "hook"), events.join(", "), files.join(", "))))
}
