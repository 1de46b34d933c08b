//! Cursor: `.cursor`, `~/.cursor` and `.cursorrules`.

use agentd_protocol::capabilities::CapabilityLevel::{Project, User};

use crate::{
    scan::Scan,
    servers::{Dialect, of_file},
    texts::{CommandNames, RuleForm, always, commands, is_rule, rules},
};

pub(super) fn read(scan: &mut Scan<'_>) {
    let project = scan.place.in_cwd(".cursor").filter(|_| scan.reads(Project));
    let user = scan.place.in_home(".cursor").filter(|_| scan.reads(User));
    for (folder, level) in [(project, Project), (user, User)] {
        let Some(folder) = folder.filter(|folder| scan.is_folder(folder)) else { continue };
        rules(scan, &folder.join("rules"), level, RuleForm::Plain, true, &is_rule);
        commands(scan, &folder.join("commands"), level, CommandNames::OfFile);
        of_file(scan, &folder.join("mcp.json"), level, Dialect::Common);
    }
    if let Some(path) = scan.place.in_cwd(".cursorrules").filter(|_| scan.reads(Project)) {
        always(scan, &path, Project, "cursorrules");
    }
}
