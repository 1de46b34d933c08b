use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;

use super::*;
use crate::output_storage::OutputStorage;

/// A folder with an artifact of that content, and its id.
fn folder(content: &[u8]) -> (tempfile::TempDir, ArtifactFolder, String) {
    let dir = tempfile::tempdir().unwrap();
    let folder = ArtifactFolder::beside(&dir.path().join("s.jsonl"));
    let CreatedFile { path, id, .. } = OutputStorage::from(folder.clone()).create().unwrap();
    fs::write(path, content).unwrap();
    (dir, folder, id.unwrap())
}

#[test]
fn the_folder_is_named_like_the_session() {
    let of = |file: &str| ArtifactFolder::beside(Path::new(file)).0;
    assert_eq!(of("/s/2026-01-01_a.b.jsonl"), Path::new("/s/2026-01-01_a.b"));
    assert_eq!(of("/s/notes"), Path::new("/s/notes.artifacts"));
    assert_eq!(of("/s/notes.txt"), Path::new("/s/notes.txt.artifacts"));
}

#[test]
fn only_the_owner_can_read() {
    let (dir, folder, id) = folder(b"x");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(folder.0, dir.path().join("s"));
    assert_eq!(mode(&folder.0), 0o700);
    let found = folder.find(&id).unwrap().unwrap();
    assert_eq!(found.path, folder.0.join(format!("{id}.bash.log")));
    assert_eq!((mode(&found.path), found.bytes), (0o600, 1));
    assert_eq!(folder.list().unwrap(), [found]);
}

#[test]
fn ids_lead_nowhere_else() {
    let (dir, folder, id) = folder(b"x");
    fs::write(dir.path().join("secret.bash.log"), "x").unwrap();
    fs::create_dir(folder.0.join("0123abcd.bash.log")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("secret.bash.log"), folder.0.join("11111111.bash.log"))
        .unwrap();
    for other in [
        "",
        "../secret",
        "..",
        "/etc/passwd",
        "0123abcd",
        "11111111",
        "01234567",
        "0123abcg",
        "\0",
        &id.to_uppercase(),
    ] {
        if other != id {
            assert_eq!(folder.find(other).unwrap(), None, "{other:?}");
            assert_eq!(folder.read(other, 0, 9).unwrap(), None, "{other:?}");
        }
    }
    assert_eq!(folder.list().unwrap().len(), 1);
    let none = ArtifactFolder::beside(&dir.path().join("none.jsonl"));
    assert_eq!((none.list().unwrap(), none.find(&id).unwrap()), (Vec::new(), None));
}

#[test]
fn a_copy_keeps_its_artifacts() {
    let (dir, folder, id) = folder(b"x");
    fs::create_dir_all(folder.own_files().join("sub")).unwrap();
    fs::write(folder.own_files().join("sub/plan.md"), "plan").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.own_files().join("link")).unwrap();
    let copy = ArtifactFolder::beside(&dir.path().join("copy.jsonl"));
    folder.share_with(&copy).unwrap();
    // Once more changes nothing.
    folder.share_with(&copy).unwrap();
    folder.remove().unwrap();
    assert!(!folder.0.exists());
    assert_eq!(copy.read(&id, 0, 10).unwrap().unwrap().text, "x");
    assert_eq!(fs::read_to_string(copy.own_files().join("sub/plan.md")).unwrap(), "plan");
    assert!(copy.own_files().join("link").symlink_metadata().is_err());
    let without = ArtifactFolder::beside(&dir.path().join("without.jsonl"));
    folder.share_with(&without).unwrap();
    assert!(!without.0.exists());
}

#[test]
fn what_others_put_there_stays() {
    let (_dir, folder, _) = folder(b"x");
    let others = folder.0.join("mine.txt");
    fs::write(&others, "x").unwrap();
    folder.remove().unwrap();
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    fs::remove_file(others).unwrap();
    folder.remove().unwrap();
    folder.remove().unwrap();
    assert!(!folder.0.exists());
}

#[test]
fn parts_end_where_the_file_does() {
    let (_dir, folder, id) = folder(b"ab\xc3");
    let read = |offset, limit| {
        let part = folder.read(&id, offset, limit).unwrap().unwrap();
        (part.text, part.next, part.artifact.bytes)
    };
    assert_eq!(read(0, 100), ("ab\u{fffd}".into(), 3, 3));
    assert_eq!(read(3, 100), (String::new(), 3, 3));
    assert_eq!(read(900, 100), (String::new(), 900, 3));
}

proptest! {
    /// Parts put together are the whole, whatever their size.
    #[test]
    fn parts_make_the_whole(text in "[aé€😀\n]{0,60}", limit in 0usize..20) {
        let (_dir, folder, id) = folder(text.as_bytes());
        let (mut whole, mut at) = (String::new(), 0);
        loop {
            let part = folder.read(&id, at, limit).unwrap().unwrap();
            whole.push_str(&part.text);
            prop_assert_eq!(whole.len() as u64, part.next);
            if part.next == part.artifact.bytes { break; }
            prop_assert!(part.next > at);
            at = part.next;
        }
        prop_assert_eq!(whole, text);
    }
}

#[test]
fn nothing_behind_a_link_is_read_written_or_removed() {
    let (dir, elsewhere, id) = folder(b"precious");
    let linked = ArtifactFolder::beside(&dir.path().join("t.jsonl"));
    let link = || std::os::unix::fs::symlink(&elsewhere.0, &linked.0).unwrap();
    link();
    assert_eq!(linked.list().unwrap(), []);
    assert_eq!((linked.find(&id).unwrap(), linked.read(&id, 0, 9).unwrap()), (None, None));
    assert!(OutputStorage::from(linked.clone()).create().is_err());
    assert!(elsewhere.share_with(&linked).is_err());
    linked.remove().unwrap();
    assert!(!linked.0.is_symlink());
    assert_eq!(elsewhere.read(&id, 0, 9).unwrap().unwrap().text, "precious");
    // A link in the place of an output is none.
    linked.make().unwrap();
    let target = elsewhere.find(&id).unwrap().unwrap().path;
    let output = linked.0.join(format!("{id}.bash.log"));
    std::os::unix::fs::symlink(&target, &output).unwrap();
    assert_eq!(linked.list().unwrap(), []);
    linked.remove().unwrap();
    assert!(output.is_symlink() && target.exists());
}
