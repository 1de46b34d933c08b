//! The branch of a folder, read off git's files: no program is run in a folder that may be a stranger's.

use std::{fs, io::Read as _, path::Path};

/// How much of a file is read.
const MOST_BYTES: u64 = 4 << 10;

/// The branch that is checked out in the folder or around it, or the beginning of a commit.
pub(crate) fn branch(folder: &Path) -> Option<String> {
    let place = folder.ancestors().find_map(|folder| {
        let git = folder.join(".git");
        if git.is_dir() {
            return Some(git);
        }
        let text = read(&git)?;
        Some(folder.join(text.trim().strip_prefix("gitdir: ")?))
    })?;
    let head = read(&place.join("HEAD"))?;
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => head.get(..8).map(str::to_owned),
    }
}

fn read(file: &Path) -> Option<String> {
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(file).ok()?.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_is_that_of_the_folder_around() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        assert_eq!(branch(&below), Some("feature/x".to_owned()));
        fs::write(folder.path().join(".git/HEAD"), "0123456789abcdef\n").unwrap();
        assert_eq!(branch(&below), Some("01234567".to_owned()));
        fs::write(folder.path().join("a/.git"), "gitdir: ../other\n").unwrap();
        assert_eq!(branch(&below), None);
    }
}
