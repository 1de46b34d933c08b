//! Profiles of `~/.aws/config` and `~/.aws/credentials`.

use std::path::{Path, PathBuf};

use agentd_config::Environment;

use super::{
    AwsProblem, files,
    ini::{self, Section, Sections},
};
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
            let text = files::read(path).await.map_err(|error| AwsProblem::file(path, &error))?;
            read.push(ini::read(&text.unwrap_or_default()));
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
