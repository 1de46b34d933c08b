//! Reads the listing of a folder.

/// Names that tell most about a project, best first; compared without case.
const TELLING: &[&str] = &[
    "readme.md",
    "readme",
    "readme.txt",
    "readme.rst",
    "agents.md",
    "claude.md",
    "cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
    "pom.xml",
    "makefile",
    "main.rs",
    "main.py",
    "main.go",
    "main.c",
    "index.js",
    "index.ts",
    "index.html",
];

/// Endings of files that are text.
const TEXT_ENDINGS: &[&str] = &[
    ".md", ".txt", ".rst", ".toml", ".json", ".yaml", ".yml", ".rs", ".py", ".js", ".ts", ".go", ".c", ".h",
    ".cpp", ".java", ".rb", ".sh", ".html", ".css", ".csv",
];

/// What is in a folder.
pub(super) struct Listing {
    pub(super) files: Vec<String>,
    pub(super) folders: Vec<String>,
}

impl Listing {
    /// Reads a listing: a name a line, folders with a slash at the end. What stands behind a blank line is a remark of
    /// the tool.
    pub(super) fn parse(text: &str) -> Self {
        let lines = text.lines().take_while(|line| !line.trim().is_empty());
        let names = lines.filter(|line| !line.starts_with('(') || !line.ends_with(')'));
        let (folders, files): (Vec<&str>, Vec<&str>) = names.partition(|name| name.ends_with('/'));
        Self {
            files: files.into_iter().map(str::to_owned).collect(),
            folders: folders.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Files worth reading, best first.
    pub(super) fn promising(&self) -> impl Iterator<Item = &str> {
        let named = TELLING
            .iter()
            .filter_map(|telling| self.files.iter().find(|name| name.eq_ignore_ascii_case(telling)));
        let is_text = |name: &&String| {
            let lower = name.to_ascii_lowercase();
            !TELLING.contains(&lower.as_str()) && TEXT_ENDINGS.iter().any(|ending| lower.ends_with(ending))
        };
        named.chain(self.files.iter().filter(is_text)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_told_apart() {
        let listing = Listing::parse("b.rs\nsrc/\nReadme.md\na.bin\n.git/\n\n[2 more lines]");
        assert_eq!((listing.files.len(), listing.folders.len()), (3, 2));
        assert_eq!(listing.promising().collect::<Vec<_>>(), ["Readme.md", "b.rs"]);
        let empty = Listing::parse("(no output)");
        assert!(empty.files.is_empty() && empty.folders.is_empty());
    }
}
