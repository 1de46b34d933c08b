//! The position of a setting, for faults in its value that are found later.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    AgentDir, ProjectFolders,
    json_edit::{JsonStep, line_of},
    json_file::{read_json, read_project_json},
};

/// The file and the line of a setting at the top of a file: in the project's file where that counts (`trusted`) and has it,
/// else in the user's. With `item`, the line of that text in the setting's list, as far as it is there. Reads files; blocks.
#[must_use]
pub fn place_of(
    agent_dir: &AgentDir,
    folders: &ProjectFolders,
    trusted: bool,
    (key, item): (&str, Option<&str>),
) -> Option<(PathBuf, u32)> {
    let project = folders.find("settings.json").filter(|_| trusted);
    let files = project.into_iter().map(|path| (read_project_json(&path), path));
    let user = std::iter::once_with(|| (read_json(&agent_dir.settings_file()), agent_dir.settings_file()));
    files.chain(user).find_map(|(read, path)| {
        let document = read.ok().flatten()?;
        let value = document.value.get(key)?;
        let is_item = |text: &str, value: &Value| value.as_str().is_some_and(|value| value.trim() == text);
        let place = item.and_then(|text| value.as_array()?.iter().position(|value| is_item(text, value)));
        let steps: Vec<JsonStep<'_>> =
            [JsonStep::Key(key)].into_iter().chain(place.map(JsonStep::Item)).collect();
        Some((path, line_of(&document.text, &steps)))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_file_that_counts_and_the_line_in_it() {
        let place = tempfile::tempdir().unwrap();
        let (agent, cwd) = (place.path().join("agent"), place.path().join("cwd"));
        fs::create_dir_all(&agent).unwrap();
        fs::create_dir_all(cwd.join(".pi")).unwrap();
        fs::write(agent.join("settings.json"), "{\n\"a\": 1,\n\"list\": [\n\"x\",\n\" y \"]}").unwrap();
        fs::write(cwd.join(".pi/settings.json"), "{\"a\": 2}").unwrap();
        let agent_dir = AgentDir::at(&agent);
        let folders = ProjectFolders::of(&cwd, &agent_dir);
        let check = |trusted, key, item, expected: Option<(PathBuf, u32)>| {
            assert_eq!(place_of(&agent_dir, &folders, trusted, (key, item)), expected, "{key} {item:?}");
        };
        let user = agent.join("settings.json");
        check(false, "a", None, Some((user.clone(), 2)));
        check(true, "a", None, Some((folders.find("settings.json").unwrap(), 1)));
        check(true, "list", Some("y"), Some((user.clone(), 5)));
        check(true, "list", Some("z"), Some((user, 3)));
        check(true, "none", None, None);
    }
}
