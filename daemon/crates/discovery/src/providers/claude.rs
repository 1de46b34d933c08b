//! Claude Code: `.claude` and `~/.claude`.

use std::path::Path;

use agentd_protocol::capabilities::{
    CapabilityKind,
    CapabilityLevel::{self, Project, User},
};

use crate::{
    hooks::{hook_files, settings_hooks},
    scan::Scan,
    servers::{Dialect, of_file},
    texts::{CommandNames, RuleForm, agents, commands, context, is_markdown, listed, rules, skills},
};

pub(super) fn read(scan: &mut Scan<'_>) {
    let named = scan.place.environment.non_empty("CLAUDE_CONFIG_DIR").is_some();
    let user = scan.place.named_or_in_home("CLAUDE_CONFIG_DIR", ".claude");
    // Who names the folder means it.
    let user = user.filter(|_| scan.reads(User) || (named && scan.switches.foreign()));
    let user = user.filter(|folder| scan.is_folder(folder));
    let project = scan.place.in_cwd(".claude").filter(|_| scan.reads(Project));
    let project = project.filter(|folder| scan.is_folder(folder));

    // Commands of the user come before those of the project, as in Claude Code.
    if let Some(folder) = &user {
        commands(scan, &folder.join("commands"), User, CommandNames::WithFolders);
    }
    if let Some(folder) = &project {
        commands(scan, &folder.join("commands"), Project, CommandNames::WithFolders);
        context(scan, &folder.join("CLAUDE.md"), Some(0), Project);
        below(scan, folder, Project);
        let _ = of_file(scan, &folder.join(".mcp.json"), Project, Dialect::Common)
            || of_file(scan, &folder.join("mcp.json"), Project, Dialect::Common);
        settings_hooks(scan, &folder.join("settings.json"), Project);
        settings_hooks(scan, &folder.join("settings.local.json"), Project);
    }
    if scan.reads(Project) {
        for (_, folder) in scan.place.walk_up() {
            let folder = folder.join(".claude");
            if scan.is_folder(&folder) {
                skills(scan, &folder.join("skills"), Project);
            }
        }
    }
    if let Some(folder) = &user {
        context(scan, &folder.join("CLAUDE.md"), None, User);
        skills(scan, &folder.join("skills"), User);
        below(scan, folder, User);
        let of_home = scan.place.in_home(".claude.json").filter(|_| !named);
        let of_home = of_home.is_some_and(|path| of_file(scan, &path, User, Dialect::Common));
        let _ = of_home
            || of_file(scan, &folder.join(".claude.json"), User, Dialect::Common)
            || of_file(scan, &folder.join("mcp.json"), User, Dialect::Common);
        settings_hooks(scan, &folder.join("settings.json"), User);
    }
}

fn below(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel) {
    rules(scan, &folder.join("rules"), level, RuleForm::AlwaysWithoutGlobs, true, &is_markdown);
    agents(scan, &folder.join("agents"), level, true);
    hook_files(scan, &folder.join("hooks"), level);
    listed(scan, &folder.join("tools"), level, CapabilityKind::Tools, &[".ts", ".js"]);
    listed(scan, &folder.join("extensions"), level, CapabilityKind::ExtensionModules, &[".ts", ".js"]);
}
