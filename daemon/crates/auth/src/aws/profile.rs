//! The profiles of AWS, and the files of its own programs.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use agentd_config::Environment;
use agentd_files::replace::Replacement;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

use super::AwsProblem;
use crate::Secret;

/// The profile that counts where none is named.
pub(super) const DEFAULT: &str = "default";

/// Both files as they are now.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    config: Sections,
    credentials: Sections,
    /// The paths of the files, for messages.
    places: String,
}

impl Profiles {
    /// Reads the files; one that is not there is empty.
    ///
    /// # Errors
    /// Names a file that is there and cannot be read.
    pub(super) async fn load(environment: &Environment) -> Result<Self, AwsProblem> {
        let paths = [
            path(environment, "AWS_CONFIG_FILE", "config"),
            path(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        ];
        let mut read = Vec::with_capacity(2);
        for path in paths.iter().flatten() {
            let text = read_file(path).await.map_err(|error| AwsProblem::file(path, &error))?;
            read.push(parse_ini(&text.unwrap_or_default()));
        }
        let places: Vec<String> = paths.iter().flatten().map(|path| path.display().to_string()).collect();
        let mut read = read.into_iter();
        let (config, credentials) = match paths {
            [Some(_), _] => (read.next().unwrap_or_default(), read.next().unwrap_or_default()),
            [None, _] => (Sections::default(), read.next().unwrap_or_default()),
        };
        Ok(Self { config, credentials, places: places.join(" and ") })
    }

    /// The files, for messages.
    pub(super) fn places(&self) -> &str {
        &self.places
    }

    /// A profile; `None` where neither file has it.
    pub(super) fn get<'a>(&'a self, name: &'a str) -> Option<Profile<'a>> {
        let own = self.config.get(&format!("profile {name}"));
        let config = own.or_else(|| (name == DEFAULT).then(|| self.config.get(DEFAULT)).flatten());
        let credentials = self.credentials.get(name);
        (config.is_some() || credentials.is_some()).then_some(Profile { name, config, credentials })
    }

    /// A login that several profiles share.
    pub(super) fn sso_session(&self, name: &str) -> Option<&Section> {
        self.config.get(&format!("sso-session {name}"))
    }
}

/// A profile: the values of both files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Profile<'a> {
    pub(super) name: &'a str,
    config: Option<&'a Section>,
    credentials: Option<&'a Section>,
}

impl<'a> Profile<'a> {
    /// A value; that of the file of credentials comes first.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let of = |section: Option<&'a Section>| section?.get(name).map(String::as_str);
        of(self.credentials).or_else(|| of(self.config)).filter(|value| !value.is_empty())
    }

    /// [`Self::get`] for a secret.
    pub(super) fn secret(&self, name: &str) -> Option<Secret> {
        self.get(name).map(Secret::new)
    }

    /// Returns whether the profile configures a source of keys.
    pub(super) fn has_credentials(&self) -> bool {
        let names = [
            "aws_access_key_id",
            "role_arn",
            "credential_process",
            "credential_source",
            "sso_session",
            "sso_start_url",
            "web_identity_token_file",
        ];
        names.iter().any(|name| self.get(name).is_some())
    }
}

/// The file that a variable names, or the usual one in the home folder; `None` without a home.
fn path(environment: &Environment, variable: &str, name: &str) -> Option<PathBuf> {
    match environment.non_empty(variable) {
        Some(path) => Some(expanded(path, environment)),
        None => home(environment).map(|home| home.join(".aws").join(name)),
    }
}

/// The user's home folder.
pub(super) fn home(environment: &Environment) -> Option<PathBuf> {
    environment.get_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// A path with `~/` for the home folder.
pub(super) fn expanded(path: &str, environment: &Environment) -> PathBuf {
    match (path.strip_prefix("~/"), home(environment)) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => Path::new(path).to_owned(),
    }
}

/// The sections of a file, by the text between their brackets.
pub(super) type Sections = BTreeMap<String, Section>;

/// The values of a section, by name in small letters.
pub(super) type Section = BTreeMap<String, String>;

/// Reads a file. It never fails: lines that are neither section nor value are skipped, as AWS's own programs do. Lines that
/// begin with white space continue the value before them, and none of those is needed here.
pub(super) fn parse_ini(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut current: Option<&mut Section> = None;
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.split_once(']').map(|(name, _)| normalized(name));
            current = name.map(|name| sections.entry(name).or_default());
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim().to_lowercase(), without_remark(value).trim());
        if let Some(section) = current.as_deref_mut().filter(|_| !name.is_empty()) {
            section.insert(name, value.to_owned());
        }
    }
    sections
}

/// A section's name with single spaces, and without quotes around its last part.
fn normalized(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    words.join(" ")
}

/// A value up to a remark, which begins with white space.
fn without_remark(value: &str) -> &str {
    let ends = [" #", " ;", "\t#", "\t;"].into_iter().filter_map(|mark| value.find(mark));
    &value[..ends.min().unwrap_or(value.len())]
}

/// The length limit for a file, in bytes: no configuration is nearly as long.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The text of a file, with what is no UTF-8 replaced; `None` where there is no such file.
///
/// # Errors
/// What the system reports, and files that are too long.
pub(super) async fn read_file(path: &Path) -> io::Result<Option<String>> {
    let path = path.to_owned();
    blocking(move || {
        // Files of any user are accepted: other programs put them there.
        let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_BYTES);
        let bytes = rules.read(&path).map_err(|error| io::Error::from(error.into_problem()))?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    })
    .await
}

/// Replaces a file in one step; the new one is readable for its owner alone.
///
/// # Errors
/// The system's; the file is then as it was.
pub(super) async fn replace_file(path: PathBuf, text: String) -> io::Result<()> {
    blocking(move || {
        let folder = path.parent().unwrap_or(Path::new("."));
        let prefix = format!("{}.", path.file_name().unwrap_or_default().to_string_lossy());
        let mut new = Replacement::create(folder, &prefix, ".tmp", 0o600)?;
        new.file_mut().write_all(text.as_bytes())?;
        new.commit(&path).map(drop)
    })
    .await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sections_and_values() {
        let text = "\u{feff}lost = 1\r\n[default]\r\nRegion=eu-west-1 # here\r\n\n# remark\n; remark\n[profile  \"my dev\"]\nkey = a=b;c\n\
                    s3 =\n  region = nested\n\tkey = nested\nno value\n= no name\n[broken\nkey = lost\n[default]\noutput = json\n[]\nx = y\n";
        let sections = parse_ini(text);
        let section = |name: &str| {
            let section = sections.get(name)?.iter();
            Some(section.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(section("default").as_deref(), Some("output=json region=eu-west-1"));
        assert_eq!(section("profile my dev").as_deref(), Some("key=a=b;c s3="));
        assert_eq!(section("").as_deref(), Some("x=y"));
        assert_eq!(sections.len(), 3);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\PC|[\\[\\]=# \n\r\t\u{0}]){0,200}") {
            parse_ini(&text);
        }
    }
}
