//! The folder of the packages, with `SHA256SUMS`.

use std::{fs, path::Path};

use crate::outcome::{About as _, Outcome, fail};

use super::hash;

const SUMS: &str = "SHA256SUMS";

/// Replaces what an earlier run put into the folder, and returns a line for each file: its size and its path.
///
/// # Errors
/// When the folder holds something else, or cannot be written.
pub(crate) fn write(folder: &Path, mut packages: Vec<(String, Vec<u8>)>) -> Outcome<Vec<String>> {
    packages.sort();
    clear(folder)?;
    let sums: String =
        packages.iter().map(|(name, content)| format!("{}  {name}\n", hash::sha256(content))).collect();
    // First of all, so that a folder that is written in part is still one of ours.
    packages.insert(0, (SUMS.to_owned(), sums.into_bytes()));
    let mut lines = Vec::new();
    for (name, content) in packages {
        let path = folder.join(&name);
        fs::write(&path, &content).at(&path)?;
        if Path::new(&name).extension().is_some_and(|extension| extension == "sh") {
            make_executable(&path)?;
        }
        lines.push(format!("{:>10}  {}", content.len(), path.display()));
    }
    Ok(lines)
}

fn make_executable(path: &Path) -> Outcome<()> {
    use std::os::unix::fs::PermissionsExt as _;

    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).at(path)
}

/// Removes the files that `SHA256SUMS` of the folder lists.
fn clear(folder: &Path) -> Outcome<()> {
    fs::create_dir_all(folder).at(folder)?;
    let path = folder.join(SUMS);
    let Ok(sums) = fs::read_to_string(&path) else {
        let is_empty = fs::read_dir(folder).at(folder)?.next().is_none();
        return if is_empty {
            Ok(())
        } else {
            fail(format!(
                "{} holds files and no {SUMS}: packages are not put among other files",
                folder.display()
            ))
        };
    };
    for name in sums.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| name) {
        let path = folder.join(name);
        // Only names: a path would lead out of the folder.
        if path.parent() == Some(folder) && path.is_file() {
            fs::remove_file(&path).at(&path)?;
        }
    }
    fs::remove_file(&path).at(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_replaces_the_last_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("dist");
        write(&out, vec![("a".to_owned(), b"1".to_vec()), ("b.sh".to_owned(), b"2".to_vec())]).unwrap();
        fs::write(out.join("kept"), "").unwrap();
        write(&out, vec![("b.sh".to_owned(), b"3".to_vec())]).unwrap();
        let sums = fs::read_to_string(out.join(SUMS)).unwrap();
        assert_eq!(sums, format!("{}  b.sh\n", hash::sha256(b"3")));
        assert!(!out.join("a").exists() && out.join("kept").exists());
    }

    #[test]
    fn a_folder_of_other_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("letter.txt"), "").unwrap();
        assert!(write(folder.path(), vec![("a".to_owned(), Vec::new())]).is_err());
        fs::write(folder.path().join(SUMS), "00  ../letter.txt\n").unwrap();
        let below = folder.path().join("below");
        fs::create_dir(&below).unwrap();
        fs::rename(folder.path().join(SUMS), below.join(SUMS)).unwrap();
        write(&below, Vec::new()).unwrap();
        assert!(folder.path().join("letter.txt").exists());
    }
}
