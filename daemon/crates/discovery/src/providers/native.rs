//! agentd's own folders: `.agentd` of the project and the agent directory, and `.omp`, whose texts have the same forms. What pi has, too
//! (skills, prompt templates, `mcp.json`), is read by other crates.

use std::path::Path;

use agentd_protocol::capabilities::CapabilityLevel::{self, Project, User};

use crate::{
    hooks::{hook_files, own_settings_hooks},
    scan::Scan,
    texts::{CommandNames, RuleForm, agents, always, commands, context, is_markdown, is_rule, rules},
};

/// The folders of a project, the strongest first.
const FOLDERS: [&str; 2] = [".agentd", ".omp"];

pub(super) fn read(scan: &mut Scan<'_>) {
    for name in FOLDERS {
        of_nearest(scan, name);
        let Some(folder) = scan.place.in_cwd(name) else { continue };
        // A session in the home directory: the agent directory is the user's.
        if folder != scan.place.agent_dir && scan.is_folder(&folder) {
            below(scan, &folder, Project);
        }
    }
    let folder = scan.place.agent_dir.clone();
    always(scan, &folder.join("RULES.md"), User, "RULES");
    below(scan, &folder, User);
}

/// `AGENTS.md` and `RULES.md` of the nearest folder of that name that is not empty. One that lacks them hides those of the folders above.
fn of_nearest(scan: &mut Scan<'_>, name: &str) {
    let nearest = scan.place.walk_up().into_iter().find_map(|(distance, folder)| {
        let folder = folder.join(name);
        (folder != scan.place.agent_dir && is_filled(scan, &folder)).then_some((distance, folder))
    });
    if let Some((distance, folder)) = nearest {
        context(scan, &folder.join("AGENTS.md"), Some(distance), Project);
        always(scan, &folder.join("RULES.md"), Project, "RULES@project");
    }
}

fn is_filled(scan: &mut Scan<'_>, folder: &Path) -> bool {
    scan.is_folder(folder) && folder.read_dir().is_ok_and(|mut entries| entries.next().is_some())
}

fn below(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel) {
    commands(scan, &folder.join("commands"), level, CommandNames::OfFile);
    rules(scan, &folder.join("rules"), level, RuleForm::Plain, false, &is_rule);
    rules(scan, &folder.join("instructions"), level, RuleForm::ApplyTo, false, &is_markdown);
    agents(scan, &folder.join("agents"), level, false);
    hook_files(scan, &folder.join("hooks"), level);
    own_settings_hooks(scan, &folder.join("settings.json"), level);
}
