//! Skills, prompt templates, instructions, and what replaces or extends the system prompt.

use agentd_config::resources::{
    ContextQuery, ResourceFlags, ResourceQuery, appended_prompt_file, context_files, load_resources,
    system_prompt_file,
};
use agentd_protocol::{
    doctor::Check,
    resources::{Diagnostic, DiagnosticLevel},
};

use super::{
    diagnose::Found,
    finding::{Name, counted},
};
use crate::admin::Context;

const RESOURCES: Name = Name("resources", "skills, templates, instructions");

/// One check on how many there are, and one for each thing that is wrong with them. Those of a project that is not trusted
/// do not count.
pub(super) fn check(context: &Context, found: &Found) -> Vec<Check> {
    let (settings, agent_dir) = (&found.settings, &found.agent_dir);
    let trusted = settings.trust.trusted;
    let loaded = load_resources(&ResourceQuery {
        agent_dir,
        cwd: &context.cwd,
        folders: &settings.folders,
        trusted,
        environment: &context.environment,
        lists: &settings.resources,
        flags: &ResourceFlags::default(),
    });
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
    let mut checks = vec![RESOURCES.ok(format!(
        "{}, {}, {}",
        counted(loaded.skills.len(), "skill"),
        counted(loaded.prompts.len(), "prompt template"),
        counted(instructions.files.len(), "instruction file"),
    ))];
    let told = diagnostics.into_iter().filter(|it| it.level > DiagnosticLevel::Info);
    checks.extend(told.map(|it| {
        let advice = it.hint.clone().unwrap_or_else(|| "Correct the file or remove it.".into());
        RESOURCES.warning(Diagnostic { hint: None, ..it }.to_string(), advice)
    }));
    checks
}
