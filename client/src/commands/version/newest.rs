//! `agentctl version --check`: whether the repository that this program was installed from has a newer one. git asks, and only when the
//! user does.

use std::{env, io, path::Path, process::Stdio, time::Duration};

use serde::Serialize;
use tokio::process::Command;

use crate::{
    exit::{Exit, Fault},
    render::one_line,
};

/// How long the repository may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The ways to a repository that git may take: none of them runs another program than git's own and ssh.
const PROTOCOLS: &str = "https:http:ssh:git:file";

/// Where this program came from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    /// The URL of the repository.
    url: String,
    /// The branch that was asked for; `None` for the default one.
    branch: Option<String>,
    /// The commit that was built, where that is known.
    commit: Option<String>,
}

/// What the repository has.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Newest {
    /// Its URL, without a password.
    pub(super) repository: String,
    /// The commit that this program was built of, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    installed_commit: Option<String>,
    /// The highest version among its tags such as `v1.2.3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_release: Option<String>,
    /// The last commit of the branch that this program came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_commit: Option<String>,
    /// Whether it has something newer; absent where nothing can be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_newer: Option<bool>,
}

/// Asks the repository: the named one, else the one that cargo installed this program from.
///
/// # Errors
/// When there is none, or git cannot ask it.
pub(super) async fn look(named: Option<&str>, built_of: Option<&str>) -> Result<Newest, Fault> {
    let origin = match named {
        Some(url) => Origin { url: url.to_owned(), branch: None, commit: built_of.map(str::to_owned) },
        None => installed_by_cargo().ok_or_else(|| {
            Fault::new(
                Exit::Failed,
                "agentctl: nothing says where this program came from: it was not installed by `cargo install --git`. Name the repository: \
                 `agentctl version --check=URL`.",
            )
        })?,
    };
    let listed = list(&origin).await.map_err(|why| {
        let url = without_password(&origin.url);
        Fault::new(Exit::Failed, format!("agentctl: git cannot ask {}: {}", one_line(&url), one_line(&why)))
    })?;
    Ok(compare(&origin, &listed, env!("CARGO_PKG_VERSION")))
}

/// What cargo noted beside the folder that this program is in.
fn installed_by_cargo() -> Option<Origin> {
    let program = env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    let root = program.parent().and_then(Path::parent)?;
    noted(&std::fs::read_to_string(root.join(".crates.toml")).ok()?)
}

/// The origin in cargo's list of installed packages, whose lines are
/// `"agentctl 0.1.0 (git+URL?branch=B#COMMIT)" = ["agentctl"]`.
fn noted(list: &str) -> Option<Origin> {
    let line = list.lines().find(|line| line.starts_with("\"agentctl ") && line.contains("(git+"))?;
    let (_, source) = line.split_once("(git+")?;
    let (source, _) = source.split_once(')')?;
    let (address, commit) = source.split_once('#').unwrap_or((source, ""));
    let (url, wanted) = address.split_once('?').unwrap_or((address, ""));
    let branch = wanted.strip_prefix("branch=").map(str::to_owned);
    // A tag or a commit that was asked for does not move.
    let commit = (!commit.is_empty() && (wanted.is_empty() || branch.is_some())).then(|| commit.to_owned());
    Some(Origin { url: url.to_owned(), branch, commit })
}

/// The branches and tags of the repository: lines of a commit, a tab and a name.
async fn list(origin: &Origin) -> Result<String, String> {
    let head = origin.branch.as_ref().map_or_else(|| "HEAD".to_owned(), |name| format!("refs/heads/{name}"));
    let asked = Command::new("git")
        .args(["ls-remote", "--", &origin.url, &head, "refs/tags/v*"])
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", PROTOCOLS)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match tokio::time::timeout(TIMEOUT, asked).await {
        Ok(output) => output.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "git is not installed".to_owned(),
            _ => error.to_string(),
        })?,
        Err(_) => return Err(format!("no answer within {} s", TIMEOUT.as_secs())),
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).replace(&origin.url, &without_password(&origin.url));
    // git says what is wrong before it gives advice.
    let why = said.lines().find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
    Err(why.or_else(|| said.lines().next()).unwrap_or("it failed").to_owned())
}

fn compare(origin: &Origin, listed: &str, version: &str) -> Newest {
    let listed = || listed.lines().filter_map(|line| line.split_once('\t'));
    let newest = listed()
        .filter_map(|(_, name)| {
            let version = name.strip_prefix("refs/tags/v")?.trim_end_matches("^{}");
            Some((numbers(version)?, version.to_owned()))
        })
        .max();
    let newest_commit =
        listed().find(|(_, name)| !name.starts_with("refs/tags/")).map(|(commit, _)| commit.to_owned());
    let by_release = newest.as_ref().and_then(|(found, _)| Some(*found > numbers(version)?));
    let by_commit = match (&origin.commit, &newest_commit) {
        // Builds note commits by their beginning.
        (Some(ours), Some(theirs)) => Some(!theirs.starts_with(ours.as_str())),
        _ => None,
    };
    Newest {
        repository: without_password(&origin.url),
        installed_commit: origin.commit.clone(),
        newest_release: newest.map(|(_, version)| version),
        newest_commit,
        is_newer: match (by_release, by_commit) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (None, None) => None,
            _ => Some(false),
        },
    }
}

/// The numbers of a version such as `1.2.3`; `None` for any other text.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// The URL without a name and a password before its host.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// The line about it.
pub(super) fn text(newest: &Newest) -> String {
    let short = |commit: &Option<String>| {
        commit.as_deref().map_or("unknown", |commit| commit.get(..12).unwrap_or(commit)).to_owned()
    };
    let what = match (newest.is_newer, &newest.newest_release) {
        (Some(true), Some(version)) if numbers(version) > numbers(env!("CARGO_PKG_VERSION")) => {
            format!("{version} is there")
        }
        (Some(true), _) => {
            let (ours, theirs) = (short(&newest.installed_commit), short(&newest.newest_commit));
            format!("there are newer commits: {theirs}, and this is {ours}")
        }
        (Some(false), _) => return "newest    this is the newest\n".to_owned(),
        (None, _) => {
            let theirs = short(&newest.newest_commit);
            return format!(
                "newest    commit {theirs}; it names no releases, and this program not its commit\n"
            );
        }
    };
    let url = one_line(&newest.repository);
    format!("newest    {}; cargo install --locked --git {url} agentd agentctl\n", one_line(&what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(commit: Option<&str>) -> Origin {
        Origin {
            url: "https://me:secret@host/agentd.git".into(),
            branch: None,
            commit: commit.map(str::to_owned),
        }
    }

    #[test]
    fn cargo_notes_where_it_came_from() {
        let list = "[v1]\n\"agentd 0.1.0 (git+https://host/x.git#aaaa)\" = [\"agentd\"]\n\
            \"agentctl 0.1.0 (git+https://host/x.git?branch=next#bbbb)\" = [\"agentctl\"]\n";
        let (url, branch) = ("https://host/x.git".to_owned(), Some("next".to_owned()));
        assert_eq!(noted(list), Some(Origin { url: url.clone(), branch, commit: Some("bbbb".into()) }));
        let pinned = list.replace("branch=next", "tag=v0.1.0");
        assert_eq!(noted(&pinned), Some(Origin { url, branch: None, commit: None }));
        assert_eq!(noted("[v1]\n\"agentctl 0.1.0 (path+file:///x)\" = [\"agentctl\"]\n"), None);
    }

    #[test]
    fn releases_and_commits_are_compared() {
        let tags = "aaaa\tHEAD\n1\trefs/tags/v0.9.0\n2\trefs/tags/v0.10.0\n2\trefs/tags/v0.10.0^{}\n3\trefs/tags/v1.0.0-rc.1\n";
        let found = compare(&origin(Some("aaaa")), tags, "0.9.0");
        assert_eq!((found.newest_release.as_deref(), found.is_newer), (Some("0.10.0"), Some(true)));
        assert_eq!(compare(&origin(Some("aa")), tags, "0.10.0").is_newer, Some(false));
        assert_eq!(compare(&origin(Some("bbbb")), tags, "0.10.0").is_newer, Some(true));
        assert_eq!(compare(&origin(None), tags, "0.10.0").is_newer, Some(false));
        assert_eq!(compare(&origin(None), "aaaa\tHEAD\n", "0.10.0").is_newer, None);
    }

    #[test]
    fn a_password_in_the_address_is_not_shown() {
        let found = compare(&origin(Some("bbbb")), "aaaa\tHEAD\n", "0.1.0");
        assert_eq!(found.repository, "https://host/agentd.git");
        assert_eq!(
            text(&found),
            "newest    there are newer commits: aaaa, and this is bbbb; cargo install --locked --git https://host/agentd.git agentd agentctl\n"
        );
        assert_eq!(without_password("file:///a@b"), "file:///a@b");
    }
}
