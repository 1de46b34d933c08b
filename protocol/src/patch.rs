//! The tool that applies a unified diff: its name, and the files that a diff names. Pure.

/// The name of the tool.
pub const PATCH_TOOL: &str = "patch";

/// The names in their order, without the `a/` and `b/` that Git puts before them; each once, the new one of a file that has another name after it.
///
/// Only heads are looked at, so that it says something of a diff that does not apply, too. What is no diff has no names.
#[must_use]
pub fn diff_names(diff: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let mut old = None;
    for line in diff.lines() {
        let name = match (line.strip_prefix("+++ "), old, line.strip_prefix("rename to ")) {
            (Some(new), Some(old), _) => Some(if plain(new) == NO_FILE { old } else { plain(new) }),
            (.., renamed) => renamed.map(plain),
        };
        old = line.strip_prefix("--- ").map(plain);
        if let Some(name) = name.filter(|name| !name.is_empty() && names.last() != Some(name)) {
            names.push(name);
        }
    }
    names
}

/// Stands in a head for the file that is not there before or after.
const NO_FILE: &str = "/dev/null";

/// A name of a head: without its time, and without what Git puts before it.
fn plain(name: &str) -> &str {
    let name = name.split('\t').next().unwrap_or_default().trim();
    name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_one_name() {
        let diff = "diff --git a/x b/x\n--- a/x.rs\t2026-01-01\n+++ b/x.rs\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ new\n@@ -0,0 +1 @@\n+n\n--- a/gone\n+++ /dev/null\n";
        assert_eq!(diff_names(diff), ["x.rs", "new", "gone"]);
        let renamed = "rename from a\nrename to sub/b\n--- a/a\n+++ b/sub/b\n@@ @@\n-x\n";
        assert_eq!(diff_names(renamed), ["sub/b"]);
    }

    #[test]
    fn lines_of_a_hunk_are_no_heads() {
        assert_eq!(
            diff_names("--- a/q.sql\n+++ b/q.sql\n@@ -1 +1 @@\n--- a comment\n-x\n+++ y\n"),
            ["q.sql"]
        );
        assert!(diff_names("no diff").is_empty());
    }
}
