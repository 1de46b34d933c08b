//! What a user without a model is told.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// agentd's folder of settings, models and sessions, by the daemon's own rule: `AGENTD_DIR`, else
/// `PI_CODING_AGENT_DIR`, else `~/.agentd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentDir(PathBuf);

impl AgentDir {
    /// The folder that a daemon started by us uses.
    pub(crate) fn from_environment() -> Self {
        Self::from_variables(|name| env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = set("HOME").unwrap_or_else(|| PathBuf::from("~"));
        let dir = set("AGENTD_DIR").or_else(|| set("PI_CODING_AGENT_DIR"));
        Self(match dir {
            Some(dir) => dir.strip_prefix("~").map(|rest| home.join(rest)).unwrap_or(dir),
            None => home.join(".agentd"),
        })
    }

    fn models_file(&self) -> PathBuf {
        self.0.join("models.json")
    }
}

/// A local OpenAI-compatible server, as `models.json` wants it.
const EXAMPLE: &str = r#"{"providers":{"local":{"baseUrl":"http://127.0.0.1:11434/v1","api":"openai-completions","apiKey":"none","models":[{"id":"MODEL"}]}}}"#;

/// Says that the demo model answers, and in three lines how to get a real one.
pub(crate) fn demo_note(dir: &AgentDir) -> String {
    let file = dir.models_file();
    let exists = file.exists();
    note(dir, &file, exists)
}

fn note(dir: &AgentDir, file: &Path, exists: bool) -> String {
    // A file that is there may hold work: it is for its owner to change.
    let (first, second) = if exists {
        (format!("${{EDITOR:-vi}} {}", quote(file)), format!("#  {EXAMPLE}"))
    } else {
        (format!("mkdir -p {}", quote(&dir.0)), format!("echo '{EXAMPLE}' > {}", quote(file)))
    };
    format!(
        "No model is configured, so the built-in demo model answers: it only looks at the folder.\n\
         To use a real one (here an OpenAI-compatible server; put in its address and the name of its MODEL):\n  \
         {first}\n  {second}\n  agentctl prompt --model local/MODEL \"What is in this folder?\"\n"
    )
}

/// The path as one word of a shell.
fn quote(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(variables: &[(&str, &str)]) -> PathBuf {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        AgentDir::from_variables(find).0
    }

    #[test]
    fn the_folder_follows_the_daemons_rule() {
        assert_eq!(dir(&[("HOME", "/h")]), Path::new("/h/.agentd"));
        assert_eq!(dir(&[("HOME", "/h"), ("PI_CODING_AGENT_DIR", "~/pi")]), Path::new("/h/pi"));
        assert_eq!(
            dir(&[("HOME", "/h"), ("PI_CODING_AGENT_DIR", "/p"), ("AGENTD_DIR", "/a")]),
            Path::new("/a")
        );
        assert_eq!(dir(&[("HOME", "/h"), ("AGENTD_DIR", "")]), Path::new("/h/.agentd"));
    }

    #[test]
    fn the_three_lines_can_be_copied() {
        let dir = AgentDir("/home/o'neil".into());
        let note = note(&dir, &dir.models_file(), false);
        let lines: Vec<&str> = note.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        assert_eq!(lines.len(), 3, "{note}");
        assert_eq!(lines[0], r"mkdir -p '/home/o'\''neil'");
        assert!(lines[1].ends_with(r"> '/home/o'\''neil/models.json'"), "{note}");
        serde_json::from_str::<serde_json::Value>(EXAMPLE).unwrap();
        assert!(!EXAMPLE.contains('\''));
    }

    #[test]
    fn an_existing_file_is_not_written_over() {
        let dir = AgentDir("/a".into());
        let note = note(&dir, &dir.models_file(), true);
        assert!(!note.contains('>') && note.contains("/a/models.json"), "{note}");
    }
}
