//! Keys that the machine itself has: of a container's role, of an instance's role.

use std::net::IpAddr;

use agentd_config::Environment;
use agentd_http::{HttpClients, is_loopback};
use reqwest::{
    Method, Url,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
};

use super::{
    AwsProblem,
    ask::{METADATA_TIME_LIMIT, ServiceRequest, ask},
    keys::FoundKeys,
    profile::{self, expanded},
};

const CONTAINER: &str = "The container's credentials endpoint";
const INSTANCE: &str = "The instance's metadata service";

/// The host of the ECS service that relative addresses belong to.
const ECS: &str = "http://169.254.170.2";

/// Hosts that may be asked without TLS, besides this machine: the services of ECS and of EKS.
const PLAIN_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

/// Returns whether the environment names a container's endpoint.
pub(super) fn has_container(environment: &Environment) -> bool {
    ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"]
        .iter()
        .any(|name| environment.non_empty(name).is_some())
}

/// Keys of the container's role.
///
/// # Errors
/// Says what the endpoint says, or why it is not asked.
pub(super) async fn container(
    environment: &Environment,
    http: &HttpClients,
) -> Result<FoundKeys, AwsProblem> {
    let mut question = ServiceRequest::get(CONTAINER, container_address(environment)?);
    let variable = environment.non_empty("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned);
    let token = match environment.non_empty("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(path) => {
            let path = expanded(path, environment);
            let missing = || AwsProblem::new(format!("{} is not there.", path.display()));
            let text = profile::read_file(&path).await.map_err(|error| AwsProblem::file(&path, &error))?;
            Some(text.ok_or_else(missing)?.trim().to_owned())
        }
        None => variable,
    };
    if let Some(token) = token {
        let mut value = HeaderValue::try_from(&token).map_err(|_| {
            AwsProblem::new(
                "The token for the container's credentials endpoint has characters that no header may have.",
            )
        })?;
        value.set_sensitive(true);
        question.headers.insert(AUTHORIZATION, value);
    }
    FoundKeys::in_json(&ask(question, http).await?.json(CONTAINER)?, CONTAINER)
}

/// The address of the container's credentials endpoint. A token goes to no other host, and hosts elsewhere are asked only with
/// TLS.
fn container_address(environment: &Environment) -> Result<Url, AwsProblem> {
    if let Some(path) = environment.non_empty("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
        let joint = if path.starts_with('/') { "" } else { "/" };
        return super::ask::address(&format!("{ECS}{joint}{path}"), "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    }
    let name = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    let url = super::ask::address(environment.non_empty(name).unwrap_or_default(), name)?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_known = || {
        let address: Option<IpAddr> = host.parse().ok();
        address.is_some_and(|address| PLAIN_HOSTS.iter().any(|known| known.parse() == Ok(address)))
    };
    if url.scheme() == "https" || is_loopback(&url) || is_known() {
        return Ok(url);
    }
    Err(AwsProblem::new(format!(
        "{name} leads to {host} without TLS, where keys are asked of this machine and of {} only.",
        PLAIN_HOSTS.join(", ")
    )))
}

/// Keys of the instance's role, by the second version of the metadata service.
///
/// # Errors
/// Says what the service says, or that there is none.
pub(super) async fn instance(environment: &Environment, http: &HttpClients) -> Result<FoundKeys, AwsProblem> {
    if environment
        .non_empty("AWS_EC2_METADATA_DISABLED")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    {
        return Err(AwsProblem::new(
            "The profile takes its keys from the instance's metadata service, and AWS_EC2_METADATA_DISABLED forbids that.",
        ));
    }
    let name = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
    let base =
        environment.non_empty(name).unwrap_or("http://169.254.169.254").trim_end_matches('/').to_owned();
    let at = |path: &str| super::ask::address(&format!("{base}/latest/{path}"), name);
    let put = ServiceRequest {
        method: Method::PUT,
        time_limit: METADATA_TIME_LIMIT,
        ..ServiceRequest::get(INSTANCE, at("api/token")?)
    };
    let token = with_header(put, "x-aws-ec2-metadata-token-ttl-seconds", "21600")?;
    let token = text(token, http).await?;
    let get = |path: &str| {
        let question =
            ServiceRequest { time_limit: METADATA_TIME_LIMIT, ..ServiceRequest::get(INSTANCE, at(path)?) };
        with_header(question, "x-aws-ec2-metadata-token", &token)
    };
    let folder = "meta-data/iam/security-credentials/";
    let role = text(get(folder)?, http).await?;
    let none = || AwsProblem::new("The instance has no role (no instance profile is attached to it).");
    let role = role.lines().next().filter(|role| !role.is_empty()).ok_or_else(none)?;
    let path = format!("{folder}{}", agentd_http::sigv4::encode(role.as_bytes()));
    FoundKeys::in_json(&ask(get(&path)?, http).await?.json(INSTANCE)?, INSTANCE)
}

fn with_header<'a>(
    mut question: ServiceRequest<'a>,
    name: &'static str,
    value: &str,
) -> Result<ServiceRequest<'a>, AwsProblem> {
    let value = HeaderValue::try_from(value)
        .map_err(|_| AwsProblem::new(format!("{INSTANCE} gave a token that no header can hold.")))?;
    question.headers.insert(HeaderName::from_static(name), value);
    Ok(question)
}

async fn text(question: ServiceRequest<'_>, http: &HttpClients) -> Result<String, AwsProblem> {
    let reply = ask(question, http).await?;
    if reply.status == 200 { Ok(reply.text.trim().to_owned()) } else { Err(reply.refusal(INSTANCE)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_containers() {
        let of = |name: &'static str, value: &str| {
            let environment: Environment = [(name, value)].into_iter().collect();
            container_address(&environment).map(String::from).map_err(|problem| problem.to_string())
        };
        let relative = |path: &str| of("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", path);
        assert_eq!(relative("/v2/x?id=1").as_deref(), Ok("http://169.254.170.2/v2/x?id=1"));
        // A path that looks like another host's user part stays a path.
        assert_eq!(relative("@evil.example/").as_deref(), Ok("http://169.254.170.2/@evil.example/"));
        let full = |url: &str| of("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
        for good in [
            "https://example.com/x",
            "http://localhost:1/x",
            "http://169.254.170.23/v1",
            "http://[fd00:ec2::23]/v1",
        ] {
            assert_eq!(full(good).as_deref(), Ok(good));
        }
        assert!(full("http://example.com/x").unwrap_err().contains("leads to example.com without TLS"));
        assert!(full("http://169.254.169.254/").is_err());
        assert!(full("file:///etc/passwd").unwrap_err().contains("no http or https address"));
    }
}
