//! The law of globs; see the crate's `fuzz.rs`.

use std::path::Path;

use super::tree::Pattern;

/// A glob is matched against any path, or is refused with the glob in the message. A glob of letters, `*` and `?`
/// matches exactly the names that it should.
pub(crate) fn globs(input: &[u8]) {
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (glob, rest) = input.split_at(at);
    let glob = String::from_utf8_lossy(glob);
    let pattern = match Pattern::new(&glob) {
        Ok(pattern) => pattern,
        Err(error) => return assert!(error.0.starts_with("Invalid glob "), "{error:?}"),
    };
    let is_simple =
        glob.chars().all(|letter| letter.is_ascii_lowercase() || matches!(letter, '*' | '?' | '.'));
    for name in rest.split(|byte| *byte == b'\n').filter(|name| !name.is_empty()).take(16) {
        let name = String::from_utf8_lossy(name);
        let path = Path::new("/w/a").join(&*name);
        let fits = pattern.fits(&path);
        let is_name = !name.contains('/') && name != ".." && name != "." && name.is_ascii();
        if is_simple && is_name && !glob.contains("**") {
            let glob = if glob.is_empty() { "*" } else { &*glob };
            assert_eq!(
                fits,
                simple(glob.as_bytes(), name.to_ascii_lowercase().as_bytes()),
                "{glob:?} {name:?}"
            );
        }
    }
}

/// Whether a glob of `*` and `?` matches a name: the textbook algorithm, backtracking to the last star.
fn simple(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut named) = (0, 0);
    let mut star = None;
    while named < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, named));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[named] => (at, named) = (at + 1, named + 1),
            _ => match star {
                Some((back, from)) => {
                    star = Some((back, from + 1));
                    (at, named) = (back + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|letter| *letter == b'*')
}
