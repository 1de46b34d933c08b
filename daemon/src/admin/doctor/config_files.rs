//! The files that configure sessions: settings, trust, skills, prompt templates and instructions.

use std::path::Path;

use agentd_config::{
    JsonDocument, JsonFileError, TrustBasis, TrustDecision, TrustSubject, read_json, read_project_json,
    resources::{
        ContextQuery, ExtensionResources, ResourceFlags, ResourceQuery, appended_prompt_file, context_files,
        load_resources, system_prompt_file,
    },
    settings as settings_files, trust_subjects,
};
use agentd_discovery::{Capabilities, DiscoveryPlace, NATIVE, Snapshot, Switches, merge};
use agentd_packages::{DiscoveryQuery, package_resources};
use agentd_protocol::{
    doctor::Check,
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
};
use serde_json::Value;

use super::check::{CheckName, LoadedSetup, counted, first_aid, show};
use crate::admin::Context;

const SETTINGS: CheckName = CheckName("settings", "settings");
const TRUST: CheckName = CheckName("trust", "project trust");
const RESOURCES: CheckName = CheckName("resources", "skills, templates, instructions");

/// One check for each settings file, and one for each value that is not used.
pub(super) fn settings(context: &Context, found: &LoadedSetup) -> Vec<Check> {
    let user = found.agent_dir.settings_file();
    let project = found.settings.folders.find("settings.json");
    let mut checks = vec![file(&user, "", read_json(&user))];
    if let Some(project) = &project {
        let note = if found.settings.trust.trusted {
            ""
        } else {
            "; not used, since this folder is not trusted (--approve)"
        };
        checks.push(file(project, note, read_project_json(project)));
    }
    // Read as if the project were trusted: faults in its values matter before. A broken file is reported above.
    let all = settings_files::load(&found.agent_dir, &context.cwd, &context.environment, Some(true));
    let values = all.diagnostics.iter().filter(|it| it.level < DiagnosticLevel::Error);
    checks.extend(values.map(|it| match it.level {
        DiagnosticLevel::Info => SETTINGS.ok(it.to_string()),
        _ => SETTINGS.warning(it.to_string(), "Correct it or remove it."),
    }));
    checks.push(trust(context, found));
    checks
}

/// Whether the project's own settings, prompts and skills are used.
fn trust(context: &Context, found: &LoadedSetup) -> Check {
    let TrustDecision { trusted, basis, warning, .. } = &found.settings.trust;
    if let Some(problem) = warning {
        return TRUST.problem(problem.to_string(), "Repair the file or remove it.");
    }
    let folder = show(&context.cwd);
    let subjects = trust_subjects(
        &context.cwd,
        &found.settings.folders,
        &found.agent_dir,
        &context.environment,
        Switches::of(found.settings.settings.discovery.as_ref()).foreign(),
    );
    let named = |TrustSubject { path, settings, note }: &TrustSubject| match (note, settings.as_slice()) {
        (Some(note), _) => format!("{} ({note})", show(path)),
        (None, []) => show(path),
        (None, settings) => format!("{} (sets {})", show(path), settings.join(", ")),
    };
    let subjects: Vec<String> = subjects.iter().map(named).collect();
    let why = match basis {
        TrustBasis::NothingToTrust => {
            return TRUST.ok(format!("{folder} has no settings, prompts or skills of its own"));
        }
        TrustBasis::Saved(saved) => format!("trust.json has an entry for {}", show(saved)),
        TrustBasis::Changed(files) => {
            let files: Vec<String> = files.iter().map(|path| show(path)).collect();
            format!("changed since it was trusted: {}", files.join(", "))
        }
        TrustBasis::Replaced(folder) => {
            format!("{} is another folder than the one that was trusted", show(folder))
        }
        TrustBasis::Setting => "setting defaultProjectTrust".to_owned(),
        TrustBasis::Flag | TrustBasis::Unasked => "nobody was asked yet".to_owned(),
    };
    let subjects = subjects.join(", ");
    if *trusted {
        return TRUST.ok(format!("{folder} is trusted ({why}): {subjects}"));
    }
    TRUST.warning(
        format!("{folder} is not trusted ({why}), so that this is not used: {subjects}"),
        match basis {
            TrustBasis::Changed(_) | TrustBasis::Replaced(_) => "Look at these files; if you trust them, say so where you are asked (agentctl prompt on a \
                                       terminal), or --approve for a session.",
            _ => "Look at these files; if you trust them, say --approve, or set the folder to true in trust.json.",
        },
    )
}

fn file(path: &Path, note: &str, read: Result<Option<JsonDocument>, JsonFileError>) -> Check {
    let until = "Until then it is not used, and nothing is saved to it.";
    match read {
        Ok(None) => SETTINGS.ok(format!("no {}: the defaults count", show(path))),
        Ok(Some(document)) => match document.value {
            Value::Object(values) => {
                SETTINGS.ok(format!("{}: {}{note}", show(path), counted(values.len(), "setting")))
            }
            _ => SETTINGS.problem(
                format!("{}: expected an object", show(path)),
                format!("Repair the file or remove it. {until}"),
            ),
        },
        Err(error) => {
            let detail = error.diagnostic(DiagnosticKind::Settings).to_string();
            SETTINGS.problem(detail, format!("{} {until}", first_aid(&error)))
        }
    }
}

/// One check with the numbers of skills, templates and instruction files, and one for each fault in them. Files of a project that
/// is not trusted do not count.
pub(super) fn resources(context: &Context, found: &LoadedSetup) -> Vec<Check> {
    let (settings, agent_dir) = (&found.settings, &found.agent_dir);
    let trusted = settings.trust.trusted;
    let flags = ResourceFlags::default();
    let packages = package_resources(
        &DiscoveryQuery {
            agent_dir,
            cwd: &context.cwd,
            folders: &settings.folders,
            trusted,
            environment: &context.environment,
            lists: &settings.resources,
            flags: &flags,
            no_mcp: false,
        },
        // Its faults are told with the packages.
        &mut Vec::new(),
    );
    let of_discovery = settings.settings.discovery.clone().unwrap_or_default();
    let disabled = of_discovery.disabled_items.unwrap_or_default();
    let included_skills = of_discovery.include_skills.unwrap_or_default();
    let capabilities = discovered(context, found);
    let query = ResourceQuery {
        agent_dir,
        cwd: &context.cwd,
        folders: &settings.folders,
        trusted,
        environment: &context.environment,
        lists: &settings.resources,
        flags: &flags,
        packages: &packages,
        // Nothing runs here.
        of_extensions: &ExtensionResources::default(),
        disabled: &disabled,
        included_skills: &included_skills,
    };
    let loaded = load_resources(&query, &capabilities.resources());
    let instructions = context_files(ContextQuery {
        agent_dir,
        cwd: &context.cwd,
        environment: &context.environment,
        trusted: Some(&settings.trust.files).filter(|_| trusted),
    });
    let mut diagnostics = instructions.diagnostics;
    for file in [system_prompt_file, appended_prompt_file] {
        file(agent_dir, &settings.folders, trusted, &mut diagnostics);
    }
    diagnostics.extend(loaded.diagnostics);
    diagnostics.extend(capabilities.warnings.iter().cloned());
    let mut checks = vec![RESOURCES.ok(format!(
        "{}, {}, {}",
        counted(loaded.skills.len(), "skill"),
        counted(loaded.prompts.len(), "prompt template"),
        counted(instructions.files.len(), "instruction file"),
    ))];
    checks.extend(other_tools(&capabilities));
    let reported = diagnostics.into_iter().filter(|it| it.level > DiagnosticLevel::Info);
    checks.extend(reported.map(|it| {
        let advice = it.hint.clone().unwrap_or_else(|| "Correct the file or remove it.".into());
        RESOURCES.warning(Diagnostic { hint: None, ..it }.to_string(), advice)
    }));
    checks
}

/// The items of other tools' files. Those of a project that is not trusted wait, as in a session. Reads files; blocks.
pub(super) fn discovered(context: &Context, found: &LoadedSetup) -> Capabilities {
    let (settings, trust) = (&found.settings.settings, &found.settings.trust);
    let switches = Switches::of(settings.discovery.as_ref());
    let place = DiscoveryPlace::of(&context.cwd, &found.agent_dir, &context.environment);
    let trusted = trust.trusted && trust.basis != TrustBasis::NothingToTrust;
    merge(Vec::new(), &Snapshot::of(&place, &switches), &switches, trusted)
}

/// The number of items of other tools; nothing where there are none.
fn other_tools(capabilities: &Capabilities) -> Option<Check> {
    let of_others = capabilities.items.iter().filter(|listed| listed.item.provider.id != NATIVE.id);
    let (count, counts) = of_others
        .fold((0, 0), |(all, counts), listed| (all + 1, counts + usize::from(listed.standing.counts())));
    let (shadowed, waiting) = (capabilities.shadowed(), capabilities.waiting());
    (count > 0).then(|| {
        RESOURCES.ok(format!(
            "{} of other tools, of which {counts} count, {shadowed} are shadowed and {waiting} wait for trust: `agentctl config \
             explain` lists them",
            counted(count, "item")
        ))
    })
}
