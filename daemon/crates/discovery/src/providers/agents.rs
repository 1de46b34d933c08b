//! The folders `.agents` and `.agent`, which are for every agent. Their skills are read by `agentd-config`, as pi does.

use std::path::Path;

use agentd_protocol::capabilities::CapabilityLevel::{self, Project, User};

use crate::{
    scan::Scan,
    texts::{CommandNames, RuleForm, commands, context, is_rule, prompts, rules, skills},
};

const FOLDERS: [&str; 2] = [".agents", ".agent"];

pub(super) fn read(scan: &mut Scan<'_>) {
    if scan.reads(Project) {
        for (distance, folder) in scan.place.walk_up() {
            below(scan, &folder, Some(distance), Project);
        }
    }
    if scan.reads(User)
        && let Some(home) = scan.place.home.clone()
    {
        below(scan, &home, None, User);
    }
}

fn below(scan: &mut Scan<'_>, folder: &Path, distance: Option<usize>, level: CapabilityLevel) {
    for name in FOLDERS {
        let folder = folder.join(name);
        if !scan.is_folder(&folder) {
            continue;
        }
        context(scan, &folder.join("AGENTS.md"), distance, level);
        if name == ".agent" {
            skills(scan, &folder.join("skills"), level);
        }
        rules(scan, &folder.join("rules"), level, RuleForm::Plain, false, &is_rule);
        prompts(scan, &folder.join("prompts"), level, ".md");
        commands(scan, &folder.join("commands"), level, CommandNames::OfFile);
    }
}
