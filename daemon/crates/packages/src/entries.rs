//! The extensions of a folder: what its manifest names, its index file, or what lies right in it.

use std::path::{Path, PathBuf};

use agentd_config::resources::FolderWalk;
use agentd_protocol::{
    plain_path::without_dots,
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
};

use crate::{
    kinds::ResourceKind,
    manifest::{Manifest, Program, Programs, extension_file},
};

/// What runs an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionKind {
    /// A file of TypeScript or JavaScript, or a folder that its `package.json` makes a module, for the Node host.
    Node,
    /// A program of its own that speaks the host protocol.
    Native {
        /// The program and its arguments. A program with a slash in it is absolute; another is looked for on the search path.
        command: Vec<String>,
        /// The version of the protocol.
        protocol: u64,
    },
    /// Code of agentd itself, by its name.
    Builtin(String),
}

/// An extension before it is known who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    pub(crate) kind: ExtensionKind,
    /// The folder that its relative paths count from.
    pub(crate) base_dir: PathBuf,
}

impl Entry {
    /// A file, or a folder that is a module.
    pub(crate) fn node(path: PathBuf) -> Self {
        let base_dir = if path.is_dir() { path.clone() } else { path.parent().unwrap_or(&path).to_owned() };
        Self { path, kind: ExtensionKind::Node, base_dir }
    }

    /// The programs of a manifest.
    pub(crate) fn programs(
        programs: Programs,
        folder: &Path,
        manifest: &Path,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<Self> {
        diagnostics.extend(programs.problems.into_iter().map(|problem| {
            let message = format!("an extension of this file is not used: {problem}");
            Diagnostic::warning(DiagnosticKind::Extension, message).level(DiagnosticLevel::Error).at(manifest)
        }));
        let entry = |(index, program): (usize, Program)| {
            let Program { mut command, protocol } = program;
            let path = if command[0].contains('/') {
                let program = without_dots(&folder.join(&command[0]));
                command[0] = program.display().to_string();
                program
            } else if index == 0 {
                manifest.to_owned()
            } else {
                // Several commands of one manifest need a path each.
                PathBuf::from(format!("{}#{}", manifest.display(), index + 1))
            };
            Self { path, kind: ExtensionKind::Native { command, protocol }, base_dir: folder.to_owned() }
        };
        programs.found.into_iter().enumerate().map(entry).collect()
    }
}

/// The extensions that a folder itself stands for: those of its `package.json` that are there, of its `extension.json`, or its
/// `index.ts` or `index.js`. `None` for a folder that is none. Blocks.
pub(crate) fn of_folder(folder: &Path, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<Entry>> {
    let manifest = Manifest::read(folder).unwrap_or_default();
    let named = manifest.lists.get(ResourceKind::Extension).iter().flatten();
    let mut entries: Vec<Entry> = named
        .map(|path| without_dots(&folder.join(path)))
        .filter(|path| path.exists())
        .map(Entry::node)
        .collect();
    let package_file = folder.join("package.json");
    entries.extend(Entry::programs(manifest.programs, folder, &package_file, diagnostics));
    if let Some(programs) = Programs::read(folder) {
        entries.extend(Entry::programs(programs, folder, &extension_file(folder), diagnostics));
    }
    if !entries.is_empty() {
        return Some(entries);
    }
    let index = ["index.ts", "index.js"].into_iter().map(|name| folder.join(name)).find(|path| path.exists());
    index.map(|path| vec![Entry::node(path)])
}

/// The extensions of a folder that is searched: what it stands for itself, else its files `*.ts` and `*.js` and its folders that stand
/// for extensions; one level deep, in the order of names. Blocks.
pub(crate) fn in_folder(folder: &Path, walk: &mut FolderWalk) -> Vec<Entry> {
    if !folder.is_dir() {
        return Vec::new();
    }
    let mut diagnostics = Vec::new();
    let found = of_folder(folder, &mut diagnostics).unwrap_or_else(|| {
        let mut found = Vec::new();
        for child in walk.children(folder) {
            if child.is_folder {
                found.extend(of_folder(&child.path, &mut diagnostics).into_iter().flatten());
            } else if child.path.extension().is_some_and(|end| end == "ts" || end == "js") {
                found.push(Entry::node(child.path));
            }
        }
        found
    });
    walk.diagnostics.append(&mut diagnostics);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestFolder;

    fn check(place: &TestFolder, expected: &[&str], said: &[&str]) {
        let mut walk = FolderWalk::new(DiagnosticKind::Extension);
        let found = in_folder(&place.path("d"), &mut walk);
        let shown: Vec<String> = found
            .iter()
            .map(|entry| match &entry.kind {
                ExtensionKind::Node => place.below(&entry.path),
                other => format!("{} {other:?}", place.below(&entry.path)).replace(&place.root(), ""),
            })
            .collect();
        assert_eq!(shown, expected);
        let told: Vec<String> =
            walk.diagnostics.iter().map(|it| it.to_string().replace(&place.root(), "")).collect();
        assert_eq!(told, said);
    }

    #[test]
    fn files_and_folders_that_stand_for_extensions() {
        let place = TestFolder::new(&[
            ("d/z.ts", ""),
            ("d/b.js", ""),
            ("d/a.mjs", ""),
            ("d/notes.md", ""),
            ("d/.hidden.ts", ""),
            ("d/node_modules/x/index.ts", ""),
            ("d/index/index.js", ""),
            ("d/index/index.ts", ""),
            ("d/deep/er/index.ts", ""),
            ("d/manifest/package.json", r#"{"pi":{"extensions":["./src/x.ts","./gone.ts","src/../y.js"]}}"#),
            ("d/manifest/src/x.ts", ""),
            ("d/manifest/y.js", ""),
            ("d/manifest/index.ts", ""),
            ("d/gone/package.json", r#"{"pi":{"extensions":["./gone.ts"]}}"#),
            ("d/gone/index.ts", ""),
            ("d/broken/package.json", "{"),
            ("d/broken/index.js", ""),
            ("d/.gitignore", "ignored/\nignored.ts\n"),
            ("d/ignored/index.ts", ""),
            ("d/ignored.ts", ""),
        ]);
        check(
            &place,
            &[
                "d/b.js",
                "d/broken/index.js",
                "d/gone/index.ts",
                "d/index/index.ts",
                "d/manifest/src/x.ts",
                "d/manifest/y.js",
                "d/z.ts",
            ],
            &[],
        );
    }

    #[test]
    fn a_folder_that_is_an_extension_itself_is_the_whole_result() {
        check(&TestFolder::new(&[("d/index.ts", ""), ("d/other.ts", "")]), &["d/index.ts"], &[]);
        check(&TestFolder::new(&[]), &[], &[]);
        check(&TestFolder::new(&[("d", "a file")]), &[], &[]);
    }

    #[test]
    fn programs_are_extensions() {
        let place = TestFolder::new(&[
            ("d/one/extension.json", r#"{"command":["./bin/x","-v"],"protocol":1}"#),
            (
                "d/two/package.json",
                r#"{"agentd":{"extensions":[{"command":["python3","x.py"]},{"command":["perl"]}]}}"#,
            ),
            ("d/wrong/extension.json", r#"[{"command":[]}]"#),
        ]);
        check(
            &place,
            &[
                r#"d/one/bin/x Native { command: ["/d/one/bin/x", "-v"], protocol: 1 }"#,
                r#"d/two/package.json Native { command: ["python3", "x.py"], protocol: 1 }"#,
                r#"d/two/package.json#2 Native { command: ["perl"], protocol: 1 }"#,
            ],
            &[
                "/d/wrong/extension.json: an extension of this file is not used: \"command\" must be a list of texts: the \
               program and its arguments",
            ],
        );
    }
}
