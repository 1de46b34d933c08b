use std::{
    env,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Command, Stdio},
};

use proptest::prelude::*;

use super::*;

/// Replaces, whatever the file is.
fn replace(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    super::replace(path, content, None)
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    (dir, root)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_new_file_has_the_mode_of_any_new_file() {
    let (_dir, root) = folder();
    fs::write(root.join("usual"), "").unwrap();
    replace(&root.join("new"), b"content").unwrap();
    assert_eq!(fs::read(root.join("new")).unwrap(), b"content");
    assert_eq!(mode(&root.join("new")), mode(&root.join("usual")));
    assert_eq!(names(&root), ["new", "usual"]);
}

#[test]
fn links_stay_and_lead_to_the_new_content() {
    let (_dir, root) = folder();
    fs::create_dir(root.join("real")).unwrap();
    fs::write(root.join("real/file"), "old").unwrap();
    symlink("real/file", root.join("link")).unwrap();
    symlink("link", root.join("link2")).unwrap();
    symlink("real/missing", root.join("dangling")).unwrap();
    replace(&root.join("link2"), b"new").unwrap();
    replace(&root.join("dangling"), b"made").unwrap();
    assert_eq!(fs::read_link(root.join("link2")).unwrap(), Path::new("link"));
    assert_eq!(fs::read_link(root.join("link")).unwrap(), Path::new("real/file"));
    assert_eq!(fs::read(root.join("real/file")).unwrap(), b"new");
    assert_eq!(fs::read(root.join("real/missing")).unwrap(), b"made");
    assert_eq!(names(&root.join("real")), ["file", "missing"]);
}

#[test]
fn owner_and_attributes_are_kept() {
    let (_dir, root) = folder();
    let path = root.join("file");
    fs::write(&path, "old").unwrap();
    if rustix::process::geteuid().is_root() {
        fchown(File::open(&path).unwrap(), Some(1234), Some(4321)).unwrap();
    }
    // Not every file system takes attributes; then there is none to keep.
    let noted = rustix::fs::setxattr(&path, "user.note", b"hello", rustix::fs::XattrFlags::empty()).is_ok();
    let old = fs::metadata(&path).unwrap();
    replace(&path, b"new").unwrap();
    let new = fs::metadata(&path).unwrap();
    assert_eq!((new.uid(), new.gid(), new.mode()), (old.uid(), old.gid(), old.mode()));
    assert_ne!(new.ino(), old.ino(), "the file was replaced, not overwritten");
    let mut value = [0; 16];
    let found = rustix::fs::getxattr(&path, "user.note", &mut value[..]).ok();
    assert_eq!(found.map(|length| &value[..length]), noted.then_some(&b"hello"[..]));
}

#[test]
fn hard_links_stay_one_file() {
    let (_dir, root) = folder();
    fs::write(root.join("a"), "a longer old content").unwrap();
    fs::hard_link(root.join("a"), root.join("b")).unwrap();
    replace(&root.join("b"), b"new").unwrap();
    assert_eq!(fs::read(root.join("a")).unwrap(), b"new");
    assert_eq!(fs::metadata(root.join("a")).unwrap().nlink(), 2);
}

/// Root may write anywhere, so this shows something only to other users.
#[test]
fn rights_of_files_and_folders_count() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let (_dir, root) = folder();
    let (open, closed) = (root.join("open"), root.join("closed"));
    fs::write(&open, "a longer old content").unwrap();
    fs::write(&closed, "old").unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o444)).unwrap();
    let refused = |path: &Path| {
        assert_eq!(
            replace(path, b"new").unwrap_err().to_string(),
            format!("EACCES: permission denied, open '{}'", path.display())
        );
    };
    // The folder would let it be replaced.
    refused(&closed);
    fs::set_permissions(&root, Permissions::from_mode(0o555)).unwrap();
    replace(&open, b"new").unwrap();
    refused(&root.join("new"));
    fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::read(&open).unwrap(), b"new");
    assert_eq!(fs::read(&closed).unwrap(), b"old");
    assert_eq!(names(&root), ["closed", "open"]);
}

#[test]
fn what_is_no_file_is_refused() {
    let (_dir, root) = folder();
    let refused = |path: &Path| replace(path, b"x").unwrap_err().to_string();
    assert_eq!(
        refused(&root),
        format!("EISDIR: illegal operation on a directory, open '{}'", root.display())
    );
    let missing = root.join("no/file");
    assert_eq!(refused(&missing), format!("ENOENT: no such file or directory, open '{}'", missing.display()));
    fs::write(root.join("file"), "").unwrap();
    let below = root.join("file/x");
    assert_eq!(refused(&below), format!("ENOTDIR: not a directory, open '{}'", below.display()));
    let long = root.join("x".repeat(300));
    assert_eq!(refused(&long), format!("ENAMETOOLONG: name too long, open '{}'", long.display()));
    let pipe = root.join("pipe");
    rustix::fs::mkfifoat(CWD, &pipe, 0o600.into()).unwrap();
    assert_eq!(refused(&pipe), format!("Cannot write {}: it is not a regular file", pipe.display()));
    assert_eq!(names(&root), ["file", "pipe"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn content_and_mode_are_as_wanted(old: Vec<u8>, new: Vec<u8>, mode_bits in 0u32..0o1000, linked: bool) {
        // Files that their owner may not write are refused unless the owner is root.
        let mode_bits = mode_bits | 0o600;
        let (_dir, root) = folder();
        let path = root.join("file");
        fs::write(&path, &old).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode_bits)).unwrap();
        symlink("file", root.join("link")).unwrap();
        replace(&root.join(if linked { "link" } else { "file" }), &new).unwrap();
        prop_assert_eq!(fs::read(&path).unwrap(), new);
        prop_assert_eq!(mode(&path), mode_bits);
        prop_assert!(fs::symlink_metadata(root.join("link")).unwrap().is_symlink());
        prop_assert_eq!(names(&root), ["file", "link"]);
    }
}

const WRITER: &str = "AGENTD_TEST_ENDLESS_WRITER";
const SIZE: usize = 1 << 20;

/// Not a check by itself: the process that the next test kills. Ends at once when nobody asks for it.
#[test]
#[ignore = "run by its own process"]
fn endless_writer() {
    let Some(path) = env::var_os(WRITER) else { return };
    for round in 0u8.. {
        replace(Path::new(&path), &vec![b'a' + round % 26; SIZE]).unwrap();
    }
}

#[test]
fn a_kill_leaves_the_old_content_or_the_new() {
    let (_dir, root) = folder();
    let path = root.join("file");
    let whole = || {
        let content = fs::read(&path).unwrap();
        assert_eq!(content.len(), SIZE);
        assert!(content.iter().all(|byte| *byte == content[0]), "a mix of two contents");
        content[0]
    };
    for round in 0..8u32 {
        fs::write(&path, vec![b'-'; SIZE]).unwrap();
        let mut writer = Command::new(env::current_exe().unwrap())
            .args(["--exact", "atomic::tests::endless_writer", "--ignored"])
            .env(WRITER, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while whole() == b'-' {
            assert!(writer.try_wait().unwrap().is_none(), "the writer ended by itself");
        }
        // Somewhere else in its work each time.
        for _ in 0..round {
            whole();
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        assert!(whole() != b'-');
    }
}
