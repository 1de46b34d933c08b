//! What a server and its authorization server say of themselves (RFC 9728, RFC 8414, OpenID Connect Discovery). Pure.

use reqwest::Url;
use serde_json::{Map, Value};

use super::error::OAuthError;

/// The most texts of a list that are taken, such as scopes.
const MAX_LIST: usize = 1000;

/// The metadata of a protected resource: an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceMetadata {
    /// The resource's own name, as it is published.
    pub(crate) resource: String,
    /// Its authorization servers, the preferred one first.
    pub(crate) authorization_servers: Vec<String>,
    /// The scopes that it knows.
    pub(crate) scopes: Option<Vec<String>>,
}

impl ResourceMetadata {
    /// Reads metadata that came for `server`.
    ///
    /// # Errors
    /// It is of another resource, or lacks what it must have.
    pub(crate) fn read(document: &Map<String, Value>, server: &Url) -> Result<Self, OAuthError> {
        let resource = text(document, "resource")
            .ok_or(OAuthError::Metadata { of: server.to_string(), why: "it has no \"resource\"" })?;
        if !covers(&resource, server) {
            return Err(OAuthError::ResourceMismatch { resource, server: server.to_string() });
        }
        Ok(Self {
            resource,
            authorization_servers: texts(document, "authorization_servers").unwrap_or_default(),
            scopes: texts(document, "scopes_supported"),
        })
    }
}

/// Whether a published resource holds a server: the same origin, and a path that the server's begins with.
pub(crate) fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let path = resource.path().trim_end_matches('/');
    let is_inside =
        server.path().strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // Sandboxed origins are equal to none, not even to themselves.
    resource.origin().is_tuple() && resource.origin() == server.origin() && is_inside
}

/// The issuer that metadata must be of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExpectedIssuer<'a> {
    /// The one that was asked; a slash at the end does not count.
    Exactly(&'a str),
    /// One at this origin: a server of the revision 2025-03-26 is its own authorization server, and its issuer may have a path.
    At(&'a str),
    /// Any: the user configured the address of the metadata.
    Any,
}

impl ExpectedIssuer<'_> {
    fn is(self, issuer: &str) -> bool {
        let without_slash = |text: &str| text.strip_suffix('/').unwrap_or(text).to_owned();
        match self {
            Self::Exactly(expected) => without_slash(expected) == without_slash(issuer),
            Self::At(origin) => {
                Url::parse(issuer).is_ok_and(|issuer| issuer.origin().ascii_serialization() == origin)
            }
            Self::Any => true,
        }
    }

    /// The issuer or origin; empty where any will do.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Exactly(text) | Self::At(text) => text,
            Self::Any => "",
        }
    }
}

/// The metadata of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerMetadata {
    /// Its name; `iss` of its answers must be the same text.
    pub(crate) issuer: String,
    /// Where the browser goes.
    pub(crate) authorization_endpoint: Option<String>,
    /// Where tokens are had.
    pub(crate) token_endpoint: Option<String>,
    /// Where clients are registered.
    pub(crate) registration_endpoint: Option<String>,
    /// The scopes that it knows.
    pub(crate) scopes: Option<Vec<String>>,
    /// The methods of PKCE that it knows.
    pub(crate) pkce_methods: Option<Vec<String>>,
    /// The ways in which clients authenticate at its token endpoint.
    pub(crate) token_auth_methods: Option<Vec<String>>,
    /// Whether it takes the addresses of client metadata documents as client ids.
    pub(crate) takes_client_documents: bool,
    /// Whether its answers to the browser name it.
    pub(crate) names_itself: bool,
}

impl ServerMetadata {
    /// Reads metadata.
    ///
    /// # Errors
    /// It is of another server.
    pub(crate) fn read(
        document: &Map<String, Value>,
        expected: ExpectedIssuer<'_>,
    ) -> Result<Self, OAuthError> {
        let issuer = text(document, "issuer").unwrap_or_default();
        if !expected.is(&issuer) {
            let expected = expected.text().to_owned();
            return Err(OAuthError::IssuerMismatch { issuer, expected });
        }
        if issuer.is_empty() {
            return Err(OAuthError::Metadata {
                of: "the authorization server".to_owned(),
                why: "it has no \"issuer\"",
            });
        }
        let is = |name: &str| document.get(name) == Some(&Value::Bool(true));
        Ok(Self {
            issuer,
            authorization_endpoint: text(document, "authorization_endpoint"),
            token_endpoint: text(document, "token_endpoint"),
            registration_endpoint: text(document, "registration_endpoint"),
            scopes: texts(document, "scopes_supported"),
            pkce_methods: texts(document, "code_challenge_methods_supported"),
            token_auth_methods: texts(document, "token_endpoint_auth_methods_supported"),
            takes_client_documents: is("client_id_metadata_document_supported"),
            names_itself: is("authorization_response_iss_parameter_supported"),
        })
    }

    /// The endpoints of the revision 2025-03-26, which servers without any metadata have at their origin.
    pub(crate) fn fallback(server: &Url) -> Self {
        let origin = server.origin().ascii_serialization();
        let at = |path: &str| Some(format!("{origin}{path}"));
        Self {
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            issuer: origin,
            scopes: None,
            pkce_methods: None,
            token_auth_methods: None,
            takes_client_documents: false,
            names_itself: false,
        }
    }
}

/// The addresses where a resource may publish its metadata, in their order.
pub(crate) fn resource_addresses(server: &Url) -> Vec<Url> {
    well_known(server, |path| {
        let name = "/.well-known/oauth-protected-resource";
        if path.is_empty() { vec![name.to_owned()] } else { vec![format!("{name}{path}"), name.to_owned()] }
    })
}

/// The addresses where an authorization server may publish its metadata, in their order.
pub(crate) fn issuer_addresses(issuer: &Url) -> Vec<Url> {
    well_known(issuer, |path| {
        let (oauth, openid) =
            ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration");
        let mut paths = vec![format!("{oauth}{path}"), format!("{openid}{path}")];
        if !path.is_empty() {
            paths.push(format!("{path}{openid}"));
        }
        paths
    })
}

fn well_known(url: &Url, paths: impl Fn(&str) -> Vec<String>) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = url.clone();
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    paths(path).into_iter().map(at).collect()
}

fn text(document: &Map<String, Value>, name: &str) -> Option<String> {
    document.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A list of texts; what is none of them is left out.
fn texts(document: &Map<String, Value>, name: &str) -> Option<Vec<String>> {
    let list = document.get(name)?.as_array()?;
    Some(list.iter().filter_map(Value::as_str).take(MAX_LIST).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_resource_holds_what_is_below_its_path() {
        for (resource, server, expected) in [
            ("https://s.example/mcp", "https://s.example/mcp", true),
            ("https://s.example/mcp", "https://s.example/mcp?x=1", true),
            ("https://s.example", "https://s.example/mcp", true),
            ("https://s.example/", "https://s.example/mcp/a", true),
            ("https://s.example/mcp/", "https://s.example/mcp", true),
            ("https://S.example:443/mcp", "https://s.example/mcp/a", true),
            ("https://s.example/mc", "https://s.example/mcp", false),
            ("https://s.example/mcp/a", "https://s.example/mcp", false),
            ("http://s.example/mcp", "https://s.example/mcp", false),
            ("https://s.example:8443/mcp", "https://s.example/mcp", false),
            ("https://evil.example/mcp", "https://s.example/mcp", false),
            ("data:x", "https://s.example/mcp", false),
            ("", "https://s.example/mcp", false),
        ] {
            assert_eq!(covers(resource, &url(server)), expected, "{resource} {server}");
        }
    }

    #[test]
    fn addresses_are_tried_in_their_order() {
        let paths = |found: Vec<Url>| found.iter().map(|url| url.path().to_owned()).collect::<Vec<_>>();
        let resource = "/.well-known/oauth-protected-resource";
        assert_eq!(
            paths(resource_addresses(&url("https://s/mcp?x=1"))),
            [&format!("{resource}/mcp"), resource]
        );
        assert_eq!(paths(resource_addresses(&url("https://s/"))), [resource]);
        let (oauth, openid) =
            ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration");
        assert_eq!(paths(issuer_addresses(&url("https://s"))), [oauth, openid]);
        assert_eq!(
            paths(issuer_addresses(&url("https://s/t/"))),
            [format!("{oauth}/t"), format!("{openid}/t"), format!("/t{openid}")]
        );
    }

    #[test]
    fn metadata_of_others_is_refused() {
        let document = |value: Value| value.as_object().unwrap().clone();
        let server = url("https://s.example/mcp");
        let mine =
            document(json!({"resource": "https://s.example/mcp", "authorization_servers": ["https://a", 7]}));
        let read = ResourceMetadata::read(&mine, &server).unwrap();
        assert_eq!((read.authorization_servers, read.scopes), (vec!["https://a".to_owned()], None));
        let other = document(json!({"resource": "https://evil.example/mcp"}));
        let error = ResourceMetadata::read(&other, &server).unwrap_err();
        assert!(matches!(error, OAuthError::ResourceMismatch { .. }), "{error}");
        assert!(ResourceMetadata::read(&Map::new(), &server).is_err());

        let of = document(json!({"issuer": "https://a/", "client_id_metadata_document_supported": true}));
        let read = ServerMetadata::read(&of, ExpectedIssuer::Exactly("https://a")).unwrap();
        assert!(read.takes_client_documents && !read.names_itself);
        assert_eq!(read.issuer, "https://a/", "as it is published");
        let error = ServerMetadata::read(&of, ExpectedIssuer::Exactly("https://b")).unwrap_err();
        assert!(matches!(error, OAuthError::IssuerMismatch { .. }), "{error}");
        assert!(ServerMetadata::read(&Map::new(), ExpectedIssuer::Exactly("https://b")).is_err());
        assert!(ServerMetadata::read(&of, ExpectedIssuer::Any).is_ok());
        assert!(ServerMetadata::read(&Map::new(), ExpectedIssuer::Any).is_err());
        let with_path = document(json!({"issuer": "https://a/oauth"}));
        assert!(ServerMetadata::read(&with_path, ExpectedIssuer::At("https://a")).is_ok());
        assert!(ServerMetadata::read(&with_path, ExpectedIssuer::At("https://b")).is_err());
        assert!(ServerMetadata::read(&with_path, ExpectedIssuer::Exactly("https://a")).is_err());
    }

    proptest! {
        #[test]
        fn any_document_is_read_or_refused(
            name in "(resource|issuer|scopes_supported|authorization_servers)",
            text in ".{0,60}",
            list in any::<bool>(),
        ) {
            let value = if list { json!([text, 1, null]) } else { json!(text) };
            let document = Map::from_iter([(name, value)]);
            let server = url("https://s.example/mcp");
            if let Ok(read) = ResourceMetadata::read(&document, &server) {
                prop_assert!(covers(&read.resource, &server));
            }
            if let Ok(read) = ServerMetadata::read(&document, ExpectedIssuer::Exactly("https://a.example")) {
                prop_assert_eq!(read.issuer.trim_end_matches('/'), "https://a.example");
            }
        }

        #[test]
        fn a_resource_never_holds_another_origin(resource in "https://[a-z.]{1,20}(/[a-z]{0,5}){0,3}", path in "(/[a-z]{0,5}){0,3}") {
            let server = url(&format!("https://s.example{path}"));
            if covers(&resource, &server) {
                let resource = url(&resource);
                prop_assert_eq!(resource.host_str(), server.host_str());
                prop_assert!(server.path().starts_with(resource.path().trim_end_matches('/')));
            }
        }
    }
}
