//! Finding the authorization server of an MCP server.

use std::sync::Arc;

use agentd_auth::endpoint::{EndpointError, EndpointRequest, RequestKind, ask_by};
use agentd_http::{HttpClients, Network, is_loopback};
use reqwest::Url;
use serde_json::{Map, Value};

use super::{
    challenge::Challenge,
    error::OAuthError,
    metadata::{ExpectedIssuer, ResourceMetadata, ServerMetadata, issuer_addresses, resource_addresses},
};

/// How endpoints are asked: the daemon's clients, by the session's network.
#[derive(Clone)]
pub(crate) struct OAuthHttp {
    pub(crate) clients: Arc<HttpClients>,
    pub(crate) network: Arc<Network>,
}

impl OAuthHttp {
    pub(crate) async fn ask(
        &self,
        request: EndpointRequest<'_>,
    ) -> Result<Map<String, Value>, EndpointError> {
        ask_by(&self.clients, Some(&self.network), request).await
    }

    async fn get(&self, url: &str) -> Result<Map<String, Value>, EndpointError> {
        self.ask(EndpointRequest { url, what: RequestKind::Get, bearer: None, headers: &[] }).await
    }
}

/// What is known of a server's authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Discovered {
    /// The name of the resource, for the parameter `resource`.
    pub(crate) resource: String,
    /// The scopes that the server knows.
    pub(crate) scopes: Option<Vec<String>>,
    /// Its authorization server.
    pub(crate) server: ServerMetadata,
    /// The metadata's address that the server named.
    pub(crate) resource_metadata: Option<String>,
}

/// What the search begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchStart<'a> {
    /// The MCP server.
    pub(crate) server: &'a Url,
    /// What it has answered; `None` where it has refused nothing yet. A server that publishes nothing has no sign-in then.
    pub(crate) challenge: Option<&'a Challenge>,
    /// The address of the authorization server's metadata, where the user gave one.
    pub(crate) metadata_url: Option<&'a str>,
    /// The only authorization server that the user accepts.
    pub(crate) issuer: Option<&'a str>,
}

/// Finds the authorization server.
///
/// # Errors
/// [`OAuthError`]. Cancel safe.
pub(crate) async fn discover(http: &OAuthHttp, start: SearchStart<'_>) -> Result<Discovered, OAuthError> {
    let SearchStart { server, challenge, metadata_url, issuer } = start;
    let is_challenged = challenge.is_some();
    let named = challenge.and_then(|challenge| challenge.resource_metadata.as_deref());
    if server.scheme() != "https" && !is_loopback(server) {
        return Err(OAuthError::InTheClear);
    }
    let resource = find_resource(http, server, named).await?;
    let found = match metadata_url {
        Some(configured) => ServerMetadata::read(&http.get(configured).await?, ExpectedIssuer::Any)?,
        None => match resource.as_ref().map(|resource| resource.authorization_servers.first()) {
            Some(Some(issuer)) => find_server(http, ExpectedIssuer::Exactly(issuer)).await?,
            // Before there was metadata of resources, a server was its own authorization server.
            Some(None) | None => {
                let origin = server.origin().ascii_serialization();
                match find_server(http, ExpectedIssuer::At(&origin)).await {
                    Err(OAuthError::NoMetadata { .. }) if resource.is_none() && is_challenged => {
                        ServerMetadata::fallback(server)
                    }
                    Err(OAuthError::NoMetadata { .. }) if resource.is_none() => {
                        return Err(OAuthError::NotAsked);
                    }
                    found => found?,
                }
            }
        },
    };
    if let Some(expected) = issuer
        && expected != found.issuer
    {
        return Err(OAuthError::IssuerMismatch { issuer: found.issuer, expected: expected.to_owned() });
    }
    let without_fragment = || {
        let mut url = server.clone();
        url.set_fragment(None);
        url.to_string()
    };
    let (resource, scopes) = match resource {
        Some(ResourceMetadata { resource, scopes, .. }) => (resource, scopes),
        None => (without_fragment(), None),
    };
    Ok(Discovered { resource, scopes, server: found, resource_metadata: named.map(str::to_owned) })
}

/// The metadata of the resource: where the server says, else at the well-known addresses.
async fn find_resource(
    http: &OAuthHttp,
    server: &Url,
    named: Option<&str>,
) -> Result<Option<ResourceMetadata>, OAuthError> {
    let addresses = named.map(str::to_owned).into_iter();
    for address in addresses.chain(resource_addresses(server).into_iter().map(String::from)) {
        match http.get(&address).await {
            Ok(document) => return ResourceMetadata::read(&document, server).map(Some),
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

async fn find_server(http: &OAuthHttp, expected: ExpectedIssuer<'_>) -> Result<ServerMetadata, OAuthError> {
    let issuer = expected.text();
    let wrong = || OAuthError::Metadata { of: issuer.to_owned(), why: "the issuer is no URL" };
    let url = Url::parse(issuer).map_err(|_| wrong())?;
    let mut last = None;
    for address in issuer_addresses(&url) {
        match http.get(address.as_str()).await {
            Ok(document) => return ServerMetadata::read(&document, expected),
            Err(error) if is_absent(&error) => last = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    Err(OAuthError::NoMetadata { issuer: issuer.to_owned(), last })
}

/// Whether an answer says that there is nothing at its address. Some servers answer every address with a page.
fn is_absent(error: &EndpointError) -> bool {
    match error {
        EndpointError::Unusable { status, .. } | EndpointError::Refused { status, .. } => {
            *status < 500 || *status == 502
        }
        EndpointError::Address { .. } | EndpointError::Unreachable { .. } => false,
    }
}
