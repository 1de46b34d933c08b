//! Lists of paths and tree entries as git writes them with `-z`. Pure.

use std::{collections::BTreeMap, ffi::OsString, os::unix::ffi::OsStringExt as _, path::PathBuf};

/// The file of a path in a tree: mode and object, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeFile {
    pub(crate) mode: String,
    pub(crate) object: String,
}

/// What differs between two trees, by path: the old file and the new one.
pub(crate) type TreeChanges = BTreeMap<Vec<u8>, (Option<TreeFile>, Option<TreeFile>)>;

/// The entries of a list that ends each with a zero byte.
pub(crate) fn split(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

/// Reads `git diff-tree -r -z --raw --no-renames`: `:100644 100755 OLD NEW M`, a zero byte, the path, a zero byte.
pub(crate) fn tree_changes(raw: &[u8]) -> TreeChanges {
    let mut changes = TreeChanges::new();
    let mut entries = split(raw);
    while let (Some(about), Some(path)) = (entries.next(), entries.next()) {
        let about = String::from_utf8_lossy(about);
        let mut words = about.trim_start_matches(':').split(' ');
        let (Some(old_mode), Some(new_mode), Some(old), Some(new)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        changes.insert(path.to_vec(), (file(old_mode, old), file(new_mode, new)));
    }
    changes
}

fn file(mode: &str, object: &str) -> Option<TreeFile> {
    (mode != "000000").then(|| TreeFile { mode: mode.to_owned(), object: object.to_owned() })
}

/// One entry of an index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry<'a> {
    /// The mark of `git ls-files -v`: `H`, `S` for skip-worktree, lower case for assume-unchanged.
    pub(crate) mark: u8,
    pub(crate) mode: &'a [u8],
    pub(crate) path: &'a [u8],
}

/// Reads `git ls-files -s -v -z`: `H 100644 OBJECT 0`, a tabulator, the path, a zero byte.
pub(crate) fn index_entries(list: &[u8]) -> impl Iterator<Item = IndexEntry<'_>> {
    split(list).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let mut words = entry[..tab].split(|byte| *byte == b' ');
        let mark = *words.next()?.first()?;
        Some(IndexEntry { mark, mode: words.next()?, path: &entry[tab + 1..] })
    })
}

/// The mode of a nested repository in a tree.
pub(crate) const GITLINK: &[u8] = b"160000";

/// Lines of `git update-index -z --index-info` that give paths these files. `hash_len` is the length of an object's name.
pub(crate) fn index_info<'a>(
    files: impl Iterator<Item = (&'a [u8], Option<&'a TreeFile>)>,
    hash_len: usize,
) -> Vec<u8> {
    let mut info = Vec::new();
    for (path, file) in files {
        match file {
            Some(file) => info.extend_from_slice(format!("{} {}\t", file.mode, file.object).as_bytes()),
            // The object of a removal is not looked at.
            None => info.extend_from_slice(format!("0 {}\t", "0".repeat(hash_len)).as_bytes()),
        }
        info.extend_from_slice(path);
        info.push(0);
    }
    info
}

/// Paths for the input of a command with `-z`.
pub(crate) fn joined<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        list.extend_from_slice(path);
        list.push(0);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_git_are_read() {
        let raw = b":100644 000000 aa 00 D\0a b\0:000000 120000 00 bb A\0\xff\nx\0";
        let changes = tree_changes(raw);
        assert_eq!(changes[&b"a b"[..]], (file("100644", "aa"), None));
        assert_eq!(changes[&b"\xff\nx"[..]], (None, file("120000", "bb")));
        let entries: Vec<_> = index_entries(b"H 100644 aa 0\ta\tb\0S 160000 bb 0\tc\0").collect();
        assert_eq!(entries[0], IndexEntry { mark: b'H', mode: b"100644", path: b"a\tb" });
        assert_eq!((entries[1].mark, entries[1].mode), (b'S', GITLINK));
    }
}
