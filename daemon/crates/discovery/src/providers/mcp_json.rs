//! `.mcp.json` and `mcp.json` of the working directory, which several tools share.

use agentd_protocol::capabilities::CapabilityLevel::Project;

use crate::{
    scan::Scan,
    servers::{Dialect, of_file},
};

pub(super) fn read(scan: &mut Scan<'_>) {
    if !scan.reads(Project) {
        return;
    }
    for name in ["mcp.json", ".mcp.json"] {
        if let Some(path) = scan.place.in_cwd(name) {
            of_file(scan, &path, Project, Dialect::Common);
        }
    }
}
