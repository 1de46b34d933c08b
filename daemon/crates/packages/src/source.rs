//! The source of a package as users write it: `npm:NAME`, a git repository, or a path.

use std::fmt;

use agentd_protocol::package_request::names_a_path;

/// The source of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageSource {
    /// `npm:NAME` or `npm:NAME@RANGE`.
    Npm(NpmSource),
    /// `git:HOST/PATH`, or the URL of a git repository, with or without `@REF`.
    Git(GitSource),
    /// Anything else: a file or a folder of this machine, used in its place.
    Path(String),
}

/// A package of an npm registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpmSource {
    /// What npm is given: name and range.
    pub spec: String,
    /// The name.
    pub name: String,
    /// The range of versions, or a tag; `None` for the newest version.
    pub range: Option<String>,
}

/// A git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// What git is given.
    pub repository: String,
    /// The host in small letters, without a port.
    pub host: String,
    /// The path on the host, without `.git`.
    pub path: String,
    /// The branch, tag or commit; `None` for the default branch.
    pub reference: Option<String>,
}

/// A source that names nothing that could be installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{source_text}\" is no source of a package: {problem}")]
pub struct SourceError {
    /// The source, without a password.
    pub source_text: String,
    /// The fault.
    pub problem: &'static str,
}

/// Beginnings of URLs of repositories.
const PROTOCOLS: [&str; 4] = ["https://", "http://", "ssh://", "git://"];

impl PackageSource {
    /// Reads a source. Pure.
    ///
    /// # Errors
    /// [`SourceError`] for the name of an npm package, a host, a path or a ref that cannot be one, or would lead out of the folder of
    /// packages.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let text = text.trim();
        let fault = |problem| SourceError { source_text: without_password(text), problem };
        if let Some(spec) = text.strip_prefix("npm:") {
            return npm(spec.trim()).map(Self::Npm).map_err(fault);
        }
        if !names_a_path(text)
            && let Some(source) = git(text).map_err(fault)?
        {
            return Ok(Self::Git(source));
        }
        if text.is_empty() {
            return Err(fault("it is empty"));
        }
        Ok(Self::Path(text.to_owned()))
    }

    /// Whether an update leaves the package as it is: it names one version.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        match self {
            Self::Npm(source) => source.range.as_deref().is_some_and(crate::version::is_exact),
            Self::Git(source) => source.reference.is_some(),
            Self::Path(_) => true,
        }
    }
}

/// The text of a source as it may be shown: a password in a URL is left out.
#[must_use]
pub fn without_password(text: &str) -> String {
    let Some((before, rest)) = text.split_once("://") else { return text.to_owned() };
    let authority = rest.find('/').unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        // `ssh://git@host` names an account and holds no secret.
        Some(at) if !before.ends_with("ssh") || rest[..at].contains(':') => {
            format!("{before}://…@{}", &rest[at + 1..])
        }
        _ => text.to_owned(),
    }
}

fn npm(spec: &str) -> Result<NpmSource, &'static str> {
    let name_end = spec.get(1..).and_then(|rest| rest.find('@')).map_or(spec.len(), |at| at + 1);
    let name = &spec[..name_end];
    let range = spec.get(name_end + 1..).map(str::trim).filter(|range| !range.is_empty());
    if !is_npm_name(name) {
        return Err("npm has no packages of that name; name one as npm:NAME or npm:@SCOPE/NAME");
    }
    // npm would take it for a flag, or for several arguments in one.
    if range.is_some_and(|range| range.contains(char::is_control)) {
        return Err("its range holds a control character");
    }
    Ok(NpmSource { spec: spec.to_owned(), name: name.to_owned(), range: range.map(str::to_owned) })
}

fn is_npm_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let letters = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
        !part.is_empty() && letters && !part.starts_with(['.', '-']) && part != "node_modules"
    };
    match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| is_part(scope) && is_part(name)),
        None => is_part(name),
    }
}

/// `Ok(None)` for what has not the form of a repository.
fn git(text: &str) -> Result<Option<GitSource>, &'static str> {
    let stripped = text.strip_prefix("git:").filter(|rest| !rest.starts_with("//"));
    let url = match stripped {
        Some(rest) => rest.trim(),
        None if PROTOCOLS.iter().any(|protocol| starts_with(text, protocol)) => text,
        None => return Ok(None),
    };
    let (address, reference) = split_reference(url);
    let Some(Address { repository, host, path }) = address_of(address) else {
        return Err("name a repository as git:HOST/PATH, or by its URL");
    };
    let host = host.to_ascii_lowercase();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).to_owned();
    if path.split('/').count() < 2 {
        return Err("the path of a repository has two parts at least, such as OWNER/NAME");
    }
    if !is_safe(&host, false) || !is_safe(&path, true) {
        return Err("its host or path would lead out of the folder of packages");
    }
    if reference.is_some_and(|reference| reference.starts_with('-') || reference.contains(char::is_control)) {
        return Err("a ref does not begin with a hyphen");
    }
    Ok(Some(GitSource { repository, host, path, reference: reference.map(str::to_owned) }))
}

fn starts_with(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

/// Parts a ref from an address: behind `#`, or behind the first `@` of the path.
fn split_reference(url: &str) -> (&str, Option<&str>) {
    if let Some((address, reference)) = url.split_once('#')
        && !reference.is_empty()
    {
        return (address, Some(reference));
    }
    let path_start = if let Some(at) = url.find("://") {
        at + 3 + url[at + 3..].find('/').unwrap_or(url.len() - at - 3)
    } else if let Some(rest) = url.strip_prefix("git@") {
        4 + rest.find(':').unwrap_or(rest.len())
    } else {
        url.find('/').unwrap_or(url.len())
    };
    match url[path_start..].find('@') {
        Some(at) if at > 1 && path_start + at + 1 < url.len() => {
            (&url[..path_start + at], Some(&url[path_start + at + 1..]))
        }
        _ => (url, None),
    }
}

struct Address {
    repository: String,
    host: String,
    path: String,
}

fn address_of(address: &str) -> Option<Address> {
    let of = |repository: String, host: &str, path: &str| {
        let is_whole = !host.is_empty() && !path.is_empty();
        is_whole.then(|| Address { repository, host: host.to_owned(), path: path.to_owned() })
    };
    if let Some(rest) = address.strip_prefix("git@") {
        let (host, path) = rest.split_once(':')?;
        return of(address.to_owned(), host, path);
    }
    if PROTOCOLS.iter().any(|protocol| starts_with(address, protocol)) {
        let (_, rest) = address.split_once("://")?;
        let (authority, path) = rest.split_once('/')?;
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = host.split_once(':').map_or(host, |(host, _)| host);
        return of(address.trim_end_matches('/').to_owned(), host, path);
    }
    let short = address.strip_prefix("github:").unwrap_or(address);
    let (host, path) = short.split_once('/')?;
    if host.contains('.') || host == "localhost" {
        return of(format!("https://{short}"), host, path);
    }
    // OWNER/NAME alone is GitHub's, as npm has it.
    of(format!("https://github.com/{short}"), "github.com", short)
}

/// Whether it names something below the folder of packages, also when it is percent-encoded.
fn is_safe(text: &str, may_have_slashes: bool) -> bool {
    let Some(decoded) = percent_decoded(text) else { return false };
    [text, decoded.as_str()].into_iter().all(|text| {
        !text.contains(['\0', '\\'])
            && !text.starts_with('/')
            && (may_have_slashes || !text.contains('/'))
            && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
    })
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for PackageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Npm(source) => write!(f, "npm:{}", source.spec),
            Self::Git(source) => f.write_str(&without_password(&source.repository)),
            Self::Path(path) => f.write_str(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> PackageSource {
        PackageSource::parse(text).unwrap()
    }

    #[test]
    fn names_of_npm() {
        let check = |text: &str, name: &str, range: Option<&str>| match parsed(text) {
            PackageSource::Npm(source) => {
                assert_eq!((source.name.as_str(), source.range.as_deref()), (name, range), "{text}");
            }
            other => panic!("{other:?}"),
        };
        check("npm:a", "a", None);
        check(" npm: a@1.2.3 ", "a", Some("1.2.3"));
        check("npm:@s/a", "@s/a", None);
        check("npm:@s/a@^1 || 2", "@s/a", Some("^1 || 2"));
        check("npm:a@next", "a", Some("next"));
        for wrong in ["npm:", "npm:../a", "npm:@s", "npm:@s/", "npm:-g", "npm:a/b", "npm:.a", "npm:a b"] {
            let error = PackageSource::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("npm has no packages of that name"), "{wrong}: {error}");
        }
    }

    #[test]
    fn repositories() {
        let check = |text: &str, repository: &str, place: &str, reference: Option<&str>| match parsed(text) {
            PackageSource::Git(it) => {
                assert_eq!(it.repository, repository, "{text}");
                assert_eq!(format!("{}/{}", it.host, it.path), place, "{text}");
                assert_eq!(it.reference.as_deref(), reference, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        };
        check("git:github.com/u/r", "https://github.com/u/r", "github.com/u/r", None);
        check("git:github.com/u/r@v1", "https://github.com/u/r", "github.com/u/r", Some("v1"));
        check("https://GitHub.com/u/r.git", "https://GitHub.com/u/r.git", "github.com/u/r", None);
        check("https://github.com/u/r#main", "https://github.com/u/r", "github.com/u/r", Some("main"));
        check("ssh://git@host:22/u/r@x", "ssh://git@host:22/u/r", "host/u/r", Some("x"));
        check("git:git@host.example:g/s/r@x", "git@host.example:g/s/r", "host.example/g/s/r", Some("x"));
        check("git://host/u/r/", "git://host/u/r", "host/u/r", None);
        check("git:https://u:p@host/a/b@c", "https://u:p@host/a/b", "host/a/b", Some("c"));
        check("git:localhost/a/b", "https://localhost/a/b", "localhost/a/b", None);
        check("git:u/r@v2", "https://github.com/u/r", "github.com/u/r", Some("v2"));
    }

    #[test]
    fn what_would_lead_elsewhere_is_refused() {
        for text in [
            "https://host/../etc",
            "https://host/a/..%2f..%2fb",
            "git:host.example/a/%2e%2e",
            "https://host/a",
            "git:host.example",
            "https://host/a/b@--upload-pack=x",
            "git:host.example/a\\b/c",
            "https://host/a//b",
        ] {
            assert!(PackageSource::parse(text).is_err(), "{text}");
        }
        let error = PackageSource::parse("https://me:hush@host/a").unwrap_err().to_string();
        assert!(error.contains("https://…@host/a") && !error.contains("hush"), "{error}");
        assert_eq!(without_password("ssh://git@host/a/b"), "ssh://git@host/a/b");
    }

    #[test]
    fn all_else_is_a_path() {
        for text in ["./a", "/a", "~/a", "a", "C:x", "file:///a", "a@b/c"] {
            assert_eq!(parsed(text), PackageSource::Path(text.to_owned()));
        }
        assert!(PackageSource::parse(" ").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_none_leads_out(text in "(npm:|git:|https://|git@)?[a-z@./:#%\\\\ -]{0,30}") {
            match PackageSource::parse(&text) {
                Ok(PackageSource::Git(it)) => {
                    prop_assert!(!format!("/{}/{}/", it.host, it.path).contains("/../"), "{it:?}");
                    prop_assert!(!it.repository.starts_with('-'));
                }
                Ok(PackageSource::Npm(it)) => prop_assert!(!it.name.contains("..") || !it.name.starts_with('.')),
                Ok(PackageSource::Path(_)) | Err(_) => {}
            }
        }
    }
}
