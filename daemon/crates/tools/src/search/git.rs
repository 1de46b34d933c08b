//! Finds git's rules outside the folders that they are for.

use std::{
    env,
    path::{Path, PathBuf},
};

use agentd_ignore_files::{CompiledRules, UnusedIgnoreFile, read_along};
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

use super::local_rules::LocalRules;

/// The longest pointer file that is read, in bytes: git writes one line.
const MAX_POINTER_BYTES: u64 = 64 << 10;

/// The text of `info/exclude` of the repository at `folder`; empty without one. In a worktree, that of the main
/// repository.
pub(super) fn exclude(folder: &Path, rules: &LocalRules<'_>) -> String {
    let git = folder.join(".git");
    let Some(repository) = (if git.is_dir() { Some(git) } else { common_folder(folder, &git, rules.owner) })
    else {
        return String::new();
    };
    rules.text(&repository.join("info/exclude"), LinkPolicy::Beneath(&repository))
}

/// The main repository's `.git` of a worktree: there `.git` is a file with `gitdir: FOLDER`, and that folder has a file
/// with the path of the common one.
fn common_folder(worktree: &Path, pointer: &Path, owner: AcceptedOwner) -> Option<PathBuf> {
    let read = |path: &Path| {
        let read = OpenRules::new(LinkPolicy::Refused).owner(owner).max_bytes(MAX_POINTER_BYTES).read(path);
        Some(String::from_utf8_lossy(&read.ok()??).into_owned())
    };
    let pointer = read(pointer)?;
    let of_worktree = worktree.join(pointer.lines().next()?.strip_prefix("gitdir: ")?);
    let common = read(&of_worktree.join("commondir"))?;
    Some(of_worktree.join(common.lines().next()?))
}

/// The user's ignore file for all repositories: `core.excludesFile` of git's configuration, or `git/ignore` beside it.
pub(super) fn global(rules: &LocalRules<'_>) -> Option<CompiledRules> {
    let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let config = env::var_os("XDG_CONFIG_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(home.as_ref()?.join(".config")));
    let named = [
        home.as_ref().map(|home| home.join(".gitconfig")),
        config.as_ref().map(|config| config.join("git/config")),
    ]
    .into_iter()
    .flatten()
    .find_map(|file| {
        let text = read_along(&file, LinkPolicy::Followed, AcceptedOwner::Own).ok()??;
        excludes_file(&text, home.as_deref())
    });
    let path = named.or_else(|| Some(config?.join("git/ignore")))?;
    let compiled = read_along(&path, LinkPolicy::Followed, AcceptedOwner::Own)
        .map_err(UnusedIgnoreFile::from)
        .and_then(|text| Ok(CompiledRules::compile(rules.root, &text.unwrap_or_default(), &rules.budget)?));
    compiled.unwrap_or_else(|error| {
        rules.unused.add(&path, &error);
        None
    })
}

/// The user's ignore file in a git configuration.
fn excludes_file(config: &str, home: Option<&Path>) -> Option<PathBuf> {
    let mut is_core = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_core = line.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("[core]"));
        }
        let entry = line
            .strip_prefix('[')
            .map_or(line, |rest| rest.split_once(']').map_or("", |(_, entry)| entry.trim()));
        if let Some((key, value)) = entry.split_once('=')
            && is_core
            && key.trim().eq_ignore_ascii_case("excludesfile")
        {
            found = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    let path = found.filter(|path| !path.is_empty())?;
    match path.strip_prefix("~/") {
        Some(below) => Some(home?.join(below)),
        None => Some(path.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_ignore_file_is_found_in_gits_configuration() {
        let found = |config: &str| excludes_file(config, Some(Path::new("/home/u")));
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(found("[core]\n\texcludesFile = ~/ignored\n"), path("/home/u/ignored"));
        assert_eq!(found("[CORE]\nexcludesfile=\"/a b\"\n[user]\nexcludesfile = /no\n"), path("/a b"));
        assert_eq!(found("[core] excludesfile = /one\n"), path("/one"));
        assert_eq!(found("[core]\nexcludesfile = /one\nexcludesfile = /two\n"), path("/two"));
        assert_eq!(found("[corelike]\nexcludesfile = /no\n"), None);
        assert_eq!(found("[core]\nexcludesfile =\n"), None);
    }
}
