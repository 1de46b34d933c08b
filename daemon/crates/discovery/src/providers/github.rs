//! GitHub Copilot: `.github` and `~/.copilot`.

use std::path::{Path, PathBuf};

use agentd_protocol::capabilities::CapabilityLevel::{self, Project, User};

use crate::{
    scan::Scan,
    texts::{RuleForm, context, prompts, rules, skills},
};

const CONTEXT: &str = "copilot-instructions.md";

/// The folders that a variable names.
const MAX_NAMED: usize = 20;

pub(super) fn read(scan: &mut Scan<'_>) {
    let project = scan.place.in_cwd(".github").filter(|_| scan.reads(Project));
    if let Some(folder) = project.filter(|folder| scan.is_folder(folder)) {
        context(scan, &folder.join(CONTEXT), Some(0), Project);
        instructions(scan, &folder, Project);
        prompts(scan, &folder.join("prompts"), Project, ".prompt.md");
        skills(scan, &folder.join("skills"), Project);
    }
    if !scan.reads(User) {
        return;
    }
    if let Some(folder) = scan.place.named_or_in_home("COPILOT_HOME", ".copilot") {
        context(scan, &folder.join(CONTEXT), None, User);
    }
    let named = scan.place.environment.non_empty("COPILOT_CUSTOM_INSTRUCTIONS_DIRS").unwrap_or_default();
    let named: Vec<PathBuf> = named.split(',').map(|path| PathBuf::from(path.trim())).collect();
    for folder in named.into_iter().filter(|path| path.is_absolute()).take(MAX_NAMED) {
        context(scan, &folder.join("AGENTS.md"), None, User);
        instructions(scan, &folder.join(".github"), User);
    }
}

fn instructions(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel) {
    let accepts = |name: &str| name.ends_with(".instructions.md");
    rules(scan, &folder.join("instructions"), level, RuleForm::ApplyTo, true, &accepts);
}
