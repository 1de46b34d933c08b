use std::fs;

use super::*;
use crate::{
    operations::{LocalFiles, MemoryHost},
    search::Walk,
};

/// A folder that is hard to walk: every kind of ignore file, a repository in a repository, odd names.
const FILES: &[(&str, &str)] = &[
    (".gitignore", "/upper\n*.log\n!keep.log\nbuild/\n"),
    ("upper", ""),
    ("w/.gitignore", "*.o\n/only-here\n"),
    ("w/.ignore", "*.tmp\n!*.o2\n"),
    ("w/.rgignore", "secret*\n!x.tmp\n"),
    ("w/a.o", ""),
    ("w/a.o2", ""),
    ("w/a.log", ""),
    ("w/keep.log", ""),
    ("w/only-here", ""),
    ("w/deep/only-here", ""),
    ("w/x.tmp", ""),
    ("w/y.tmp", ""),
    ("w/secret.txt", ""),
    ("w/build/out", ""),
    ("w/build.rs", ""),
    ("w/ space", ""),
    ("w/new\nline", ""),
    ("w/-dash", ""),
    ("w/deep/er/still/file", ""),
    ("w/deep/er/.gitignore", "!*.o\nstill/\n"),
    ("w/deep/er/b.o", ""),
    ("w/deep-er/c", ""),
    ("w/deep.er/c", ""),
    ("w/inner/.gitignore", "\u{feff}*.txt\n# no rule\n\\#odd\n"),
    ("w/inner/a.txt", ""),
    ("w/inner/a.o", ""),
    ("w/inner/#odd", ""),
    ("w/.hidden/file", ""),
];

fn found(walk: impl Iterator<Item = PathBuf>, root: &Path) -> Vec<String> {
    walk.map(|path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned()).collect()
}

fn rules<'a>(root: &'a Path, require_git: bool, unused: &'a UnusedFiles) -> WalkRules<'a> {
    WalkRules { root, own_ignore_file: ".rgignore", require_git, overrides: Override::empty(), unused }
}

/// What ripgrep's own walk gives: its rules are ours.
fn by_ripgrep(root: &Path, require_git: bool) -> Vec<String> {
    let mut builder = ignore::WalkBuilder::new(root);
    builder.hidden(false).require_git(require_git).add_custom_ignore_filename(".rgignore");
    builder.sort_by_file_name(Ord::cmp);
    let walk = builder.build().map(Result::unwrap).filter(|entry| entry.depth() > 0);
    found(walk.map(ignore::DirEntry::into_path), root)
}

/// What the walk over the disk gives, and ripgrep's, this one gives too, from the disk and from memory.
#[track_caller]
fn same_as_on_disk(repositories: &[&str], require_git: bool) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let memory = MemoryHost::new();
    let exclude = ("w/.git/info/exclude", "excluded\n");
    for (name, content) in FILES.iter().copied().chain([exclude, ("w/excluded", "")]) {
        if name.contains("/.git/") && !repositories.contains(&"w") {
            continue;
        }
        fs::create_dir_all(base.join(name).parent().unwrap()).unwrap();
        fs::write(base.join(name), content).unwrap();
        memory.put(base.join(name), content).unwrap();
    }
    for repository in repositories {
        fs::create_dir_all(base.join(repository).join(".git")).unwrap();
        memory.folder(base.join(repository).join(".git")).unwrap();
    }
    std::os::unix::fs::symlink("deep", base.join("w/link")).unwrap();
    memory.link(base.join("w/link"), "deep").unwrap();
    let root = base.join("w");
    let is_in_repository = repositories.iter().any(|folder| [".", "w"].contains(folder));
    let unused = UnusedFiles::default();
    let expected = Walk::new(rules(&root, require_git || is_in_repository, &unused));
    let expected = found(expected.map(|entry| entry.unwrap().path), &root);
    assert_eq!(by_ripgrep(&root, require_git || is_in_repository), expected, "{repositories:?}");
    assert!(expected.len() > 10, "{expected:?}");
    for files in [&LocalFiles as &dyn FileSystem, &memory] {
        let walk = FarWalk::new(files, rules(&root, require_git, &unused)).unwrap();
        assert_eq!(found(walk.map(|entry| entry.unwrap().path), &root), expected, "{repositories:?}");
    }
}

#[test]
fn it_is_the_walk_over_the_disk() {
    same_as_on_disk(&[], true);
    same_as_on_disk(&[], false);
    same_as_on_disk(&["."], true);
    same_as_on_disk(&["w"], true);
    same_as_on_disk(&["w/inner"], true);
    same_as_on_disk(&[".", "w/inner"], true);
    same_as_on_disk(&["w", "w/deep/er"], false);
    same_as_on_disk(&["w/inner"], false);
    same_as_on_disk(&["."], false);
}

#[test]
fn globs_come_before_ignore_files() {
    let memory = MemoryHost::new();
    for (name, content) in FILES {
        memory.put(Path::new("/base").join(name), content).unwrap();
    }
    memory.folder("/base/.git").unwrap();
    let root = Path::new("/base/w");
    let overrides = ignore::overrides::OverrideBuilder::new(root).add("*.o").unwrap().build().unwrap();
    let unused = UnusedFiles::default();
    let rules = WalkRules { overrides, ..rules(root, true, &unused) };
    let walk = FarWalk::new(&memory, rules).unwrap().map(Result::unwrap);
    let files = walk.filter(|entry| entry.kind == FileKind::File).map(|entry| entry.path);
    assert_eq!(found(files, root), ["a.o", "deep/er/b.o", "inner/a.o"]);
}

/// A file system in which one folder cannot be read.
struct Closed(MemoryHost, PathBuf);

impl FileSystem for Closed {
    fn open(&self, path: &Path) -> io::Result<crate::operations::OpenFile> {
        self.0.open(path)
    }

    fn about(&self, path: &Path) -> io::Result<crate::operations::FileFacts> {
        self.0.about(path)
    }

    fn check_change(&self, path: &Path) -> io::Result<()> {
        self.0.check_change(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.real_path(path)
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        self.0.create_folders(path)
    }

    fn replace(
        &self,
        path: &Path,
        content: &[u8],
        before: Option<&crate::operations::FileSnapshot<'_>>,
    ) -> Result<(), crate::operations::WriteError> {
        self.0.replace(path, content, before)
    }

    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>> {
        let mut lists = self.0.list(folders)?;
        for (folder, list) in folders.iter().zip(&mut lists) {
            if *folder == self.1 {
                *list = Err(rustix::io::Errno::ACCESS.into());
            }
        }
        Ok(lists)
    }

    fn read_each(&self, files: &[PathBuf], take: crate::operations::TakeFile<'_>) -> io::Result<()> {
        self.0.read_each(files, take)
    }
}

#[test]
fn a_folder_that_cannot_be_read_is_told_and_passed_over() {
    let memory = MemoryHost::new();
    memory.put("/w/a/file", "").unwrap();
    memory.put("/w/b/file", "").unwrap();
    let files = Closed(memory, "/w/a".into());
    let unused = UnusedFiles::default();
    let walk = FarWalk::new(&files, rules(Path::new("/w"), true, &unused)).unwrap();
    let seen: Vec<_> =
        walk.map(|entry| entry.map(|entry| entry.path).map_err(|error| error.kind())).collect();
    let path = |path: &str| Ok(PathBuf::from(path));
    assert_eq!(seen, [path("/w/a"), Err(io::ErrorKind::PermissionDenied), path("/w/b"), path("/w/b/file")]);
}
