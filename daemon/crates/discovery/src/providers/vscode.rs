//! VS Code: `.vscode/mcp.json`.

use agentd_protocol::capabilities::CapabilityLevel::Project;

use crate::{
    scan::Scan,
    servers::{Dialect, add, json_object},
};

pub(super) fn read(scan: &mut Scan<'_>) {
    let folder = scan.place.in_cwd(".vscode").filter(|_| scan.reads(Project));
    let Some(folder) = folder.filter(|folder| scan.is_folder(folder)) else { return };
    let path = folder.join("mcp.json");
    let Some(object) = json_object(scan, &path, Project) else { return };
    // The older form has them one level deeper.
    let older = object.get("mcp").and_then(|mcp| mcp.get("servers"));
    for servers in [object.get("servers"), older].into_iter().flatten() {
        add(scan, &path, Project, servers, Dialect::Common);
    }
}
