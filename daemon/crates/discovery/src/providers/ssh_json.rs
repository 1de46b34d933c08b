//! `ssh.json` and `.ssh.json`: hosts by their names. They are listed; agentd connects to none of them by itself.

use agentd_protocol::capabilities::{CapabilityKind, CapabilityLevel::Project};
use serde_json::Value;

use crate::{scan::Scan, servers::json_object, texts::LISTED_ONLY};

/// The hosts of one file.
const MAX_HOSTS: usize = 200;

pub(super) fn read(scan: &mut Scan<'_>) {
    if !scan.reads(Project) {
        return;
    }
    for name in ["ssh.json", ".ssh.json"] {
        let Some(path) = scan.place.in_cwd(name) else { continue };
        let Some(object) = json_object(scan, &path, Project) else { continue };
        let Some(Value::Object(hosts)) = object.get("hosts") else { continue };
        for (name, host) in hosts.iter().take(MAX_HOSTS) {
            let description = host.get("description").or_else(|| host.get("host")).and_then(Value::as_str);
            let description = description.map(str::to_owned);
            let mut item =
                scan.item(CapabilityKind::Ssh, name.as_str(), &path, Project).described(description);
            item.no_effect = Some(LISTED_ONLY);
            scan.add(item);
        }
    }
}
