//! Windsurf: `.windsurf`, `.windsurfrules` and `~/.codeium/windsurf`.

use agentd_protocol::capabilities::CapabilityLevel::{Project, User};

use crate::{
    scan::Scan,
    servers::{Dialect, of_file},
    texts::{RuleForm, always, is_markdown, rules},
};

pub(super) fn read(scan: &mut Scan<'_>) {
    if scan.reads(Project) {
        if let Some(folder) = scan.place.in_cwd(".windsurf").filter(|folder| scan.is_folder(folder)) {
            rules(scan, &folder.join("rules"), Project, RuleForm::Trigger, true, &is_markdown);
            of_file(scan, &folder.join("mcp_config.json"), Project, Dialect::Common);
        }
        if let Some(path) = scan.place.in_cwd(".windsurfrules") {
            always(scan, &path, Project, "windsurfrules");
        }
    }
    let user = scan.place.in_home(".codeium/windsurf").filter(|_| scan.reads(User));
    if let Some(folder) = user.filter(|folder| scan.is_folder(folder)) {
        always(scan, &folder.join("memories/global_rules.md"), User, "global_rules");
        of_file(scan, &folder.join("mcp_config.json"), User, Dialect::Common);
    }
}
