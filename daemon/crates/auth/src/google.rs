//! Credentials of Google Cloud: what `gcloud` or a service account left on this machine (application default credentials).

use std::{
    io,
    path::{Path, PathBuf},
};

use agentd_config::Environment;
use agentd_http::{Account, HttpClients};
use agentd_protocol::oauth_setting::TokenFormat;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenError, OpenProblem, OpenRules};
use serde_json::{Map, Value, json};

use crate::{
    Secret,
    jwt::{JwtAlgorithm, JwtError, sign_jwt},
    oauth::{EndpointError, EndpointRequest, RequestKind, ask, expires, now_ms},
    tokens::{ShortToken, TokenCache},
};

const PROVIDER: &str = "google-vertex";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const GRANT_JWT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const GRANT_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Files of any user are accepted: other programs put them there.
const FILE: OpenRules<'_> =
    OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_FILE_BYTES);

/// The life of an assertion, in seconds; the allowed maximum.
const ASSERTION_LIFE_S: i64 = 3600;

/// Returns whether a provider takes such credentials.
pub(crate) fn has(provider: &str) -> bool {
    provider == PROVIDER
}

/// Why there is no token of Google's. No message holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum GoogleError {
    /// The file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is of no use.
    #[error("{} cannot be used: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: String,
    },
    /// Something is missing beside it.
    #[error("{0} is not set")]
    Missing(&'static str),
    /// The endpoint gave nothing.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Its answer has no token.
    #[error("the answer of the token endpoint has no token in it")]
    NoToken,
}

/// A kind of credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// A file, which the variable names or `gcloud` wrote.
    File(PathBuf),
    /// A metadata server, which is only asked when `GCE_METADATA_HOST` names it.
    Metadata(String),
}

fn source(environment: &Environment) -> Option<Source> {
    let named = environment.non_empty("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
    let usual = || {
        let folder = environment.non_empty("CLOUDSDK_CONFIG").map(PathBuf::from);
        let home = environment.non_empty("HOME").map(|home| Path::new(home).join(".config/gcloud"));
        let file = folder.or(home)?.join("application_default_credentials.json");
        file.exists().then_some(file)
    };
    let metadata =
        || environment.non_empty("GCE_METADATA_HOST").map(|host| Source::Metadata(host.to_owned()));
    named.or_else(usual).map(Source::File).or_else(metadata)
}

/// The location that requests go to.
pub(crate) fn location(environment: &Environment) -> Option<String> {
    environment.non_empty("GOOGLE_CLOUD_LOCATION").map(str::to_owned)
}

fn project(environment: &Environment, file: Option<&Map<String, Value>>) -> Option<String> {
    let of_file = || {
        let member = |name: &str| Some(file?.get(name)?.as_str()?.to_owned());
        member("project_id").or_else(|| member("quota_project_id"))
    };
    let named =
        ["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"].into_iter().find_map(|name| environment.non_empty(name));
    named.map(str::to_owned).or_else(of_file)
}

/// Returns whether credentials, project and location are there, as far as files say.
pub(crate) fn is_configured(environment: &Environment) -> bool {
    let is_there = |source: Source| match source {
        Source::File(path) => read(&path).is_ok_and(|file| project(environment, Some(&file)).is_some()),
        Source::Metadata(_) => project(environment, None).is_some(),
    };
    location(environment).is_some() && source(environment).is_some_and(is_there)
}

/// Returns whether the user configured credentials: the variable names a file.
pub(crate) fn is_meant(environment: &Environment) -> bool {
    environment.non_empty("GOOGLE_APPLICATION_CREDENTIALS").is_some() || is_configured(environment)
}

/// A token, and the account that it is for.
///
/// # Errors
/// [`GoogleError`]. Cancel safety: the next one who asks gets the token.
pub(crate) async fn token(
    environment: &Environment,
    http: &HttpClients,
    tokens: &TokenCache,
    is_refused: impl Fn(&Secret) -> bool,
) -> Result<(Secret, Account), GoogleError> {
    let source = source(environment).ok_or(GoogleError::Missing("GOOGLE_APPLICATION_CREDENTIALS"))?;
    let (token, project) = match &source {
        Source::File(path) => {
            let path = path.clone();
            let reading = tokio::task::spawn_blocking(move || read(&path).map(|file| (path, file)));
            let ended = |_| GoogleError::Missing("a daemon that goes on");
            let (path, file) = reading.await.map_err(ended)??;
            let project = project(environment, Some(&file));
            let text = Value::Object(file.clone()).to_string();
            (tokens.get(&text, is_refused, of_file(http, &path, &file)).await?, project)
        }
        Source::Metadata(host) => {
            (tokens.get(host, is_refused, of_metadata(http, host)).await?, project(environment, None))
        }
    };
    let project = Some(project.ok_or(GoogleError::Missing("GOOGLE_CLOUD_PROJECT"))?);
    let location = Some(location(environment).ok_or(GoogleError::Missing("GOOGLE_CLOUD_LOCATION"))?);
    Ok((token, Account { project, location, ..Account::default() }))
}

fn read(path: &Path) -> Result<Map<String, Value>, GoogleError> {
    let file = |source| GoogleError::File { path: path.to_owned(), source };
    let content = |problem: &str| GoogleError::Content { path: path.to_owned(), problem: problem.to_owned() };
    let bytes = match FILE.read_present(path).map_err(OpenError::into_problem) {
        Ok(bytes) => bytes,
        Err(OpenProblem::TooLong { .. }) => return Err(content("it is much too long")),
        Err(problem) => return Err(file(problem.into())),
    };
    let text = String::from_utf8(bytes).map_err(|_| content("it is not UTF-8 text"))?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(content("it holds no JSON object")),
        // The words of the parser could quote what is in the file.
        Err(error) => Err(content(&format!("it is no JSON (line {})", error.line()))),
    }
}

async fn of_file(
    http: &HttpClients,
    path: &Path,
    file: &Map<String, Value>,
) -> Result<ShortToken, GoogleError> {
    let content = |problem: String| GoogleError::Content { path: path.to_owned(), problem };
    let member = |name: &str| {
        let found = file.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        found.ok_or_else(|| content(format!("it has no \"{name}\"")))
    };
    let url = member("token_uri").unwrap_or(TOKEN_URL);
    match member("type")? {
        "service_account" => {
            let assertion =
                assertion(member("client_email")?, member("private_key")?, file, url).map_err(content)?;
            exchange(http, url, &[("grant_type", GRANT_JWT), ("assertion", &assertion)]).await
        }
        "authorized_user" => {
            let fields = [
                ("grant_type", "refresh_token"),
                ("client_id", member("client_id")?),
                ("client_secret", member("client_secret")?),
                ("refresh_token", member("refresh_token")?),
            ];
            exchange(http, url, &fields).await
        }
        "external_account" => {
            if file.contains_key("service_account_impersonation_url") {
                return Err(content("agentd does not take on service accounts by external accounts".into()));
            }
            let subject = subject_token(file).await.map_err(content)?;
            let fields = [
                ("grant_type", GRANT_EXCHANGE),
                ("audience", member("audience")?),
                ("scope", SCOPE),
                ("requested_token_type", ACCESS_TOKEN),
                ("subject_token_type", member("subject_token_type")?),
                ("subject_token", subject.expose()),
            ];
            exchange(http, member("token_url")?, &fields).await
        }
        _ => {
            Err(content("its \"type\" is none of service_account, authorized_user, external_account".into()))
        }
    }
}

/// The token of another cloud, which a program of its own keeps in a file.
async fn subject_token(file: &Map<String, Value>) -> Result<Secret, String> {
    let source = file.get("credential_source").unwrap_or(&Value::Null);
    let path = source["file"]
        .as_str()
        .ok_or("of external accounts, agentd knows those with a \"file\" only")?
        .to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let read = FILE.read_present(Path::new(&path)).map_err(|error| error.into_problem().into());
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        text.map_err(|error: io::Error| format!("{path}: {error}"))
    });
    let text = read.await.map_err(|error| error.to_string())??;
    if source["format"]["type"] != "json" {
        return Ok(Secret::new(text.trim()));
    }
    let name = source["format"]["subject_token_field_name"].as_str().unwrap_or_default();
    let value: Value =
        serde_json::from_str(&text).map_err(|_| "the file of its token is no JSON".to_owned())?;
    value[name].as_str().map(Secret::new).ok_or_else(|| format!("the file of its token has no \"{name}\""))
}

async fn of_metadata(http: &HttpClients, host: &str) -> Result<ShortToken, GoogleError> {
    let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
    let headers = &[("metadata-flavor", "Google")];
    short(
        &ask(http, EndpointRequest { url: &url, what: RequestKind::GetNearby, bearer: None, headers })
            .await?,
    )
}

async fn exchange(http: &HttpClients, url: &str, fields: &[(&str, &str)]) -> Result<ShortToken, GoogleError> {
    let what = RequestKind::Post(TokenFormat::Form, fields);
    short(&ask(http, EndpointRequest { url, what, bearer: None, headers: &[] }).await?)
}

fn short(answer: &Map<String, Value>) -> Result<ShortToken, GoogleError> {
    let token = answer.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty());
    let token = Secret::new(token.ok_or(GoogleError::NoToken)?);
    Ok(ShortToken { token, ends_ms: expires(answer) })
}

/// An assertion that proves possession of a service account's key (RFC 7523).
fn assertion(email: &str, key: &str, file: &Map<String, Value>, audience: &str) -> Result<String, String> {
    let now = now_ms() / 1000;
    let claims =
        json!({"iss": email, "scope": SCOPE, "aud": audience, "iat": now, "exp": now + ASSERTION_LIFE_S});
    let key_id = file.get("private_key_id").and_then(Value::as_str);
    let claims = claims.as_object().cloned().unwrap_or_default();
    sign_jwt(key, JwtAlgorithm::Rs256, key_id, &claims).map_err(|error| match error {
        JwtError::Key(_) => "its \"private_key\" is no RSA key in PKCS #8 form".to_owned(),
        JwtError::Signature => "its \"private_key\" cannot sign".to_owned(),
    })
}

#[cfg(test)]
mod tests;
