//! Paths: cleaned, real, and matched with the patterns of rules.

use std::{
    ffi::OsString,
    fs,
    path::{Component, Path, PathBuf},
};

#[cfg(test)]
use agentd_protocol::plain_path::without_dots;
use globset::{GlobBuilder, GlobMatcher};

/// Links that are followed at most on the way to a real path; more are a loop.
const MAX_LINKS: u32 = 40;

/// The path that the system goes to, links resolved and `..` taken after them. What is not there is taken as it is written. `None` for
/// a loop of links, and where a folder cannot be looked at.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    let mut real = PathBuf::new();
    let mut left: Vec<OsString> = path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let mut links = 0;
    while let Some(part) = left.pop() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => {
                real.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            _ => real.push(&part),
        }
        match fs::symlink_metadata(&real) {
            Ok(found) if found.file_type().is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                let target = fs::read_link(&real).ok()?;
                real.pop();
                left.extend(target.components().rev().map(|part| part.as_os_str().to_owned()));
            }
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) => {}
            Err(_) => return None,
        }
    }
    Some(real)
}

/// A pattern of paths.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    matcher: GlobMatcher,
    /// The folder that everything that matches lies in, or the only path that does.
    stem: PathBuf,
}

impl PathPattern {
    /// `./` begins at `cwd`, `~/` at `home`; others are absolute, or begin anywhere (`**`).
    pub(crate) fn new(pattern: &str, cwd: &Path, home: &Path) -> Result<Self, String> {
        let below = |folder: &Path, rest: &str| {
            let folder = globset::escape(&folder.to_string_lossy());
            format!("{}/{rest}", folder.trim_end_matches('/'))
        };
        let full = match pattern {
            "~" => globset::escape(&home.to_string_lossy()),
            "." => globset::escape(&cwd.to_string_lossy()),
            _ => match (pattern.strip_prefix("~/"), pattern.strip_prefix("./")) {
                (Some(rest), _) => below(home, rest),
                (_, Some(rest)) => below(cwd, rest),
                _ if pattern.starts_with('/') || pattern.starts_with("**") => pattern.to_owned(),
                _ => return Err("must begin with ./ (the session's folder), ~/, / or **".to_owned()),
            },
        };
        if full.split('/').any(|part| part == "..") {
            return Err("must not contain ..".to_owned());
        }
        let glob = GlobBuilder::new(&full)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        let mut stem = PathBuf::from("/");
        for part in full.trim_start_matches('/').split('/') {
            if part.contains(['*', '?', '[', '{', '\\']) {
                break;
            }
            stem.push(part);
        }
        Ok(Self { matcher: glob.compile_matcher(), stem })
    }

    /// Whether the pattern has this path, or all that is in it.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.matcher.is_match(path) || self.matcher.is_match(path.join("x"))
    }

    /// Whether something in this folder, or the folder itself, may match.
    pub(crate) fn may_be_below(&self, folder: &Path) -> bool {
        self.stem.starts_with(folder) || folder.starts_with(&self.stem)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn patterns() {
        let pattern = |text: &str| PathPattern::new(text, Path::new("/w/p"), Path::new("/home/u")).unwrap();
        let ssh = pattern("~/.ssh/**");
        assert!(ssh.has(Path::new("/home/u/.ssh/id")) && ssh.has(Path::new("/home/u/.ssh/a/b")));
        assert!(ssh.has(Path::new("/home/u/.ssh")), "a folder that is denied as a whole");
        assert!(!ssh.has(Path::new("/home/u/.sshx")));
        assert!(ssh.may_be_below(Path::new("/home")) && !ssh.may_be_below(Path::new("/w")));
        assert!(pattern("./docs/**").has(Path::new("/w/p/docs/a.md")));
        assert!(!pattern("./docs/*").has(Path::new("/w/p/docs/a/b")));
        assert!(
            pattern("**/.env").has(Path::new("/w/p/x/.env"))
                && pattern("**/.env").may_be_below(Path::new("/w"))
        );
        assert!(PathPattern::new("docs", Path::new("/w"), Path::new("/h")).is_err());
        assert!(PathPattern::new("./../x", Path::new("/w"), Path::new("/h")).is_err());
    }

    #[test]
    fn real_paths_follow_links_before_they_go_up() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        fs::create_dir_all(place.join("a/b")).unwrap();
        symlink("a/b", place.join("link")).unwrap();
        symlink("loop", place.join("loop")).unwrap();
        assert_eq!(real(&place.join("link/../x")), Some(place.join("a/x")));
        assert_eq!(real(&place.join("link/new/file")), Some(place.join("a/b/new/file")));
        assert_eq!(real(&place.join("loop/x")), None);
        assert_eq!(without_dots(&place.join("link/../x")), place.join("x"));
    }
}
