//! Gemini CLI: `GEMINI.md`, `.gemini` and `~/.gemini`.

use std::path::Path;

use agentd_protocol::capabilities::{
    CapabilityKind,
    CapabilityLevel::{self, Project, User},
};
use serde_json::Value;

use crate::{
    scan::Scan,
    servers::{Dialect, json_object, of_file},
    texts::{LISTED_ONLY, context},
};

const CONTEXT: &str = "GEMINI.md";

pub(super) fn read(scan: &mut Scan<'_>) {
    if scan.reads(Project) {
        if let Some(folder) = scan.place.in_cwd(".gemini").filter(|folder| scan.is_folder(folder)) {
            context(scan, &folder.join(CONTEXT), Some(0), Project);
            below(scan, &folder, Project);
        }
        for (distance, folder) in scan.place.walk_up() {
            context(scan, &folder.join(CONTEXT), Some(distance), Project);
        }
    }
    let user = scan.place.in_home(".gemini").filter(|_| scan.reads(User));
    if let Some(folder) = user.filter(|folder| scan.is_folder(folder)) {
        context(scan, &folder.join(CONTEXT), None, User);
        below(scan, &folder, User);
    }
}

fn below(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel) {
    of_file(scan, &folder.join("settings.json"), level, Dialect::Gemini);
    for folder in scan.folders(&folder.join("extensions"), level) {
        let path = folder.join("gemini-extension.json");
        let Some(manifest) = json_object(scan, &path, level) else { continue };
        let text = |key: &str| manifest.get(key).and_then(Value::as_str).map(str::to_owned);
        let of_folder = || folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = text("name").unwrap_or_else(of_folder);
        let mut item =
            scan.item(CapabilityKind::Extensions, name, &path, level).described(text("description"));
        item.no_effect = Some(LISTED_ONLY);
        scan.add(item);
    }
}
