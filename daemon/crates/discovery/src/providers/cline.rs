//! Cline: `.clinerules`, a folder or a file; the nearest one in the project.

use agentd_protocol::capabilities::CapabilityLevel::Project;

use crate::{
    scan::Scan,
    texts::{RuleForm, always, is_markdown, rules},
};

pub(super) fn read(scan: &mut Scan<'_>) {
    if !scan.reads(Project) {
        return;
    }
    for (_, folder) in scan.place.walk_up() {
        let path = folder.join(".clinerules");
        if scan.is_folder(&path) {
            return rules(scan, &path, Project, RuleForm::AlwaysWithoutGlobs, false, &is_markdown);
        }
        if scan.is_file(&path) {
            return always(scan, &path, Project, "clinerules");
        }
    }
}
