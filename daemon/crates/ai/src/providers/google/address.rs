//! The address of a request, and its authorisation there.

use agentd_protocol::model::Model;
use reqwest::Url;

use crate::{
    Credentials, Request,
    failure::{Failure, FailureKind},
    http::endpoint,
};

/// The host of the Gemini API.
const GEMINI_HOST: &str = "generativelanguage.googleapis.com";

/// The part of an address that stands for the location.
const LOCATION: &str = "{location}";

/// Multi-region locations, which have addresses of another form.
const MULTI_REGIONS: &[&str] = &["us", "eu"];

/// The authorisation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// By an API key in a header of its own.
    Key,
    /// By an access token.
    Token,
    /// By a configured header, or not at all.
    Header,
}

/// The address of a model of the Gemini API.
///
/// # Errors
/// Names what is wrong with the model's id or the base URL.
pub(super) fn gemini(model: &Model) -> Result<Url, Failure> {
    let id = &model.id;
    let name = if id.starts_with("models/") || id.starts_with("tunedModels/") {
        id.clone()
    } else {
        format!("models/{id}")
    };
    // The vendor's host needs a version in the path.
    let base = model.base_url.trim().trim_end_matches('/');
    let version = if base.ends_with(GEMINI_HOST) { "/v1beta" } else { "" };
    let path = format!("{version}/{}", stream_method(model, &name)?);
    endpoint(model, &path, &format!("https://{GEMINI_HOST}/v1beta"))
}

/// The address of a model of Vertex AI, and how requests to it are authorised.
///
/// # Errors
/// Names the missing variable, or what is wrong with the model's id or the base URL.
pub(super) fn vertex(request: &Request) -> Result<(Url, Access), Failure> {
    let model = &*request.model;
    let access = vertex_access(&request.credentials)?;
    let account = &request.credentials.account;
    let given = |value: &Option<String>| {
        value.as_deref().map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
    };
    let (project, location) = (given(&account.project), given(&account.location));
    let base = model.base_url.trim().trim_end_matches('/');
    let names_collection = base.contains("/projects/");
    let place = match (access, names_collection) {
        (Access::Key, _) | (_, true) => None,
        (Access::Token | Access::Header, false) => {
            let project = project.ok_or_else(|| {
                missing("a project: set GOOGLE_CLOUD_PROJECT to the id of your Google Cloud project")
            })?;
            let location = location.ok_or_else(|| {
                missing("a location: set GOOGLE_CLOUD_LOCATION to one such as europe-west4, or to global")
            })?;
            Some((project, location))
        }
    };
    let base = if base.contains(LOCATION) {
        // A key without a project has no location.
        match &place {
            None => base.replace(&format!("{LOCATION}-"), "").replace(LOCATION, "global"),
            Some((_, location)) => located(base, location),
        }
    } else {
        base.to_owned()
    };
    let collection = match place {
        Some((project, location)) => {
            format!("projects/{}/locations/{}/", escaped(&project), escaped(&location))
        }
        None => String::new(),
    };
    let path =
        format!("{}/{collection}{}", version(&base), stream_method(model, &publisher_name(&model.id))?);
    let model = Model { base_url: base, ..model.clone() };
    endpoint(&model, &path, "https://{location}-aiplatform.googleapis.com").map(|url| (url, access))
}

/// The address of a location.
fn located(base: &str, location: &str) -> String {
    let regional = format!("{LOCATION}-aiplatform.googleapis.com");
    if location == "global" {
        base.replace(&format!("{LOCATION}-"), "").replace(LOCATION, location)
    } else if MULTI_REGIONS.contains(&location) && base.contains(&regional) {
        base.replace(&regional, &format!("aiplatform.{location}.rep.googleapis.com"))
    } else {
        base.replace(LOCATION, &escaped(location))
    }
}

/// The version to add to a base URL; empty if the URL has one.
fn version(base: &str) -> &'static str {
    let is_version = |part: &str| {
        part.strip_prefix('v').is_some_and(|rest| {
            let digits = rest.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches("beta");
            rest.starts_with(|c: char| c.is_ascii_digit())
                && digits.trim_end_matches(|c: char| c.is_ascii_digit()).is_empty()
        })
    };
    if base.split('/').skip(3).any(is_version) { "" } else { "/v1" }
}

/// A model with its publisher.
fn publisher_name(id: &str) -> String {
    if ["publishers/", "projects/", "models/"].iter().any(|start| id.starts_with(start)) {
        return id.to_owned();
    }
    match id.split_once('/') {
        Some((publisher, name)) => format!("publishers/{publisher}/models/{name}"),
        None => format!("publishers/google/models/{id}"),
    }
}

/// The method of a model that streams, with its query.
fn stream_method(model: &Model, name: &str) -> Result<String, Failure> {
    if name.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        let message = format!(
            "The model id \"{}\" of provider \"{}\" cannot be part of an address.",
            model.id, model.provider
        );
        return Err(Failure::new(FailureKind::Fatal, message));
    }
    Ok(format!("{}:streamGenerateContent?alt=sse", escaped_path(name)))
}

/// The authorisation of a request to Vertex AI.
fn vertex_access(credentials: &Credentials) -> Result<Access, Failure> {
    let has_project = credentials.account.project.is_some();
    match credentials.key() {
        // A placeholder like `<key>` stands for the credentials of Google Cloud.
        Some(key) if key.starts_with('<') && key.ends_with('>') => Err(no_credentials()),
        Some(key) if is_api_key(key) => Ok(Access::Key),
        Some(key) if has_project || is_token(key) => Ok(Access::Token),
        Some(_) => Ok(Access::Key),
        None => {
            let has = |wanted: &str| {
                credentials.headers.iter().any(|(name, value)| {
                    name.eq_ignore_ascii_case(wanted) && !value.expose().trim().is_empty()
                })
            };
            if has("x-goog-api-key") {
                Ok(Access::Key)
            } else if has("authorization") {
                Ok(Access::Header)
            } else {
                Err(no_credentials())
            }
        }
    }
}

/// Whether this has the form of a Google API key.
fn is_api_key(key: &str) -> bool {
    key.starts_with("AIza") || key.starts_with("AQ.")
}

/// Whether this has the form of an access token.
pub(super) fn is_token(key: &str) -> bool {
    key.starts_with("ya29.") || key.starts_with("eyJ")
}

fn no_credentials() -> Failure {
    let message = "Vertex AI has no credentials: set GOOGLE_CLOUD_API_KEY to an API key, or \
                   GOOGLE_APPLICATION_CREDENTIALS to a file with credentials of Google Cloud.";
    Failure::new(FailureKind::Auth, message)
}

fn missing(what: &str) -> Failure {
    Failure::new(FailureKind::Fatal, format!("Vertex AI needs {what}."))
}

fn escaped_path(name: &str) -> String {
    name.split('/').map(escaped).collect::<Vec<_>>().join("/")
}

/// The text as a part of a path.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Account, Secret};

    fn model(base_url: &str, id: &str) -> Model {
        Model { base_url: base_url.into(), id: id.into(), provider: "p".into(), ..Model::placeholder() }
    }

    #[test]
    fn addresses_of_the_gemini_api() {
        let check =
            |base: &str, id: &str, expected: Result<&str, &str>| match (gemini(&model(base, id)), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.as_str(), expected),
                (Err(failure), Err(expected)) => assert!(failure.message.contains(expected), "{failure}"),
                (found, _) => panic!("{base} {id}: {found:?}"),
            };
        let full =
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
        check("https://generativelanguage.googleapis.com/v1beta", "gemini-x", Ok(full));
        check("https://generativelanguage.googleapis.com/", "gemini-x", Ok(full));
        check("https://generativelanguage.googleapis.com/v1beta/", "models/gemini-x", Ok(full));
        check(
            "http://h:1/v1beta?tenant=7",
            "tunedModels/a b#c",
            Ok("http://h:1/v1beta/tunedModels/a%20b%23c:streamGenerateContent?alt=sse&tenant=7"),
        );
        check("http://h", "../x", Err("The model id \"../x\" of provider \"p\""));
        check("", "x", Err("The baseUrl of provider \"p\" is missing"));
    }

    const BASE: &str = "https://{location}-aiplatform.googleapis.com";

    fn check_vertex(base: &str, key: &str, account: (&str, &str), expected: Result<(&str, Access), &str>) {
        let mut request = Request::new(Arc::new(model(base, "gemini-x")), Vec::new());
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        request.credentials.api_key = given(key).map(Secret::new);
        request.credentials.account =
            Account { project: given(account.0), location: given(account.1), ..Account::default() };
        match (vertex(&request), expected) {
            (Ok((url, access)), Ok((expected, way))) => {
                let expected =
                    format!("{expected}/publishers/google/models/gemini-x:streamGenerateContent?alt=sse");
                assert_eq!((url.as_str(), access), (expected.as_str(), way));
            }
            (Err(failure), Err(expected)) => assert!(failure.message.contains(expected), "{failure}"),
            (found, _) => panic!("{base} {key} {account:?}: {found:?}"),
        }
    }

    #[test]
    fn addresses_of_vertex() {
        use Access::{Key, Token};
        let at = |host: &str, location: &str| format!("https://{host}/v1/projects/p-1/locations/{location}");
        let check = |location: &str, host: &str| {
            let expected = at(host, location);
            check_vertex(BASE, "ya29.t", ("p-1", location), Ok((&expected, Token)));
        };
        check("europe-west4", "europe-west4-aiplatform.googleapis.com");
        check("global", "aiplatform.googleapis.com");
        check("eu", "aiplatform.eu.rep.googleapis.com");
        // Keys need neither a project nor a location.
        for account in [("", ""), ("p-1", "europe-west4"), ("p-1", "")] {
            check_vertex(BASE, "AIza-k", account, Ok(("https://aiplatform.googleapis.com/v1", Key)));
        }
        check_vertex(BASE, "some-key", ("", ""), Ok(("https://aiplatform.googleapis.com/v1", Key)));
        // Addresses of other servers.
        check_vertex("http://h:1", "k", ("", ""), Ok(("http://h:1/v1", Key)));
        check_vertex("http://h:1/x/v1beta1/", "k", ("", ""), Ok(("http://h:1/x/v1beta1", Key)));
        let proxied = "http://h:1/v1/projects/p-1/locations/l-1";
        check_vertex("http://h:1", "tok", ("p-1", "l-1"), Ok((proxied, Token)));
        check_vertex(proxied, "ya29.t", ("", ""), Ok((proxied, Token)));
    }

    #[test]
    fn what_is_missing_is_named() {
        check_vertex(BASE, "ya29.t", ("", "l"), Err("set GOOGLE_CLOUD_PROJECT"));
        check_vertex(BASE, "ya29.t", ("p", ""), Err("set GOOGLE_CLOUD_LOCATION"));
        check_vertex(BASE, "eyJ.x.y", ("p", ""), Err("set GOOGLE_CLOUD_LOCATION"));
        check_vertex(BASE, "", ("p", "l"), Err("set GOOGLE_CLOUD_API_KEY"));
        check_vertex(BASE, "<authenticated>", ("p", "l"), Err("set GOOGLE_CLOUD_API_KEY"));
    }

    #[test]
    fn models_of_other_publishers() {
        assert_eq!(publisher_name("anthropic/claude-x"), "publishers/anthropic/models/claude-x");
        assert_eq!(publisher_name("publishers/a/models/b"), "publishers/a/models/b");
        assert_eq!(publisher_name("m"), "publishers/google/models/m");
    }
}
