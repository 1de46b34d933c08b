//! How requests to a server that is reached by HTTP are authorized, as its entry has it.

use agentd_protocol::models_file::ConfigValue;

/// How requests to a server are authorized.
#[derive(Debug, Clone, PartialEq)]
pub enum SignIn {
    /// A header of the entry does it.
    Header,
    /// OAuth, as far as the server asks for it.
    OAuth(Box<OAuthConfig>),
    /// The token of the user's login with this provider.
    Login(String),
}

/// The key `oauth`. Values with `${NAME}` are not filled in yet, and `Debug` does not show them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OAuthConfig {
    /// The client that the user registered with the authorization server.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<ConfigValue>,
    /// The port that the browser comes back to; by default a free one.
    pub callback_port: Option<u16>,
    /// The whole address that the browser comes back to.
    pub callback_url: Option<String>,
    /// The scopes to ask for, in place of those that the server names.
    pub scope: Option<String>,
    /// The name of the client where it is registered.
    pub client_name: Option<String>,
    /// How a client is had where none is configured.
    pub registration: ClientRegistration,
    /// The address of the user's own Client ID Metadata Document.
    pub client_metadata_url: Option<String>,
    /// The address of the authorization server's metadata, in place of the search for it.
    pub auth_server_metadata_url: Option<String>,
    /// The only authorization server that gets the client's secret or key.
    pub issuer: Option<String>,
    /// How tokens are had.
    pub grant: Grant,
}

/// How a client is had where none is configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientRegistration {
    /// The user's metadata document where there is one and the server takes it, else registration.
    #[default]
    Auto,
    /// Dynamic client registration (RFC 7591).
    Dynamic,
    /// The user's Client ID Metadata Document.
    MetadataDocument,
}

/// How tokens are had.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Grant {
    /// The user signs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client signs in by itself: with its secret, or with a key that signs an assertion (`private_key_jwt`).
    ClientCredentials {
        /// The private key in PEM form (PKCS #8).
        private_key: Option<ConfigValue>,
        /// The algorithm of the signature.
        signing_algorithm: Option<String>,
    },
    /// The client presents an assertion (RFC 7523).
    JwtBearer {
        /// The assertion itself, such as the token of a workload.
        assertion: Option<ConfigValue>,
        /// The file that another program keeps it in.
        assertion_file: Option<String>,
        /// The provider that exchanges an identity token for the assertion.
        identity_provider: Option<Box<IdentityProvider>>,
    },
}

/// A company's identity provider, which exchanges the user's identity token for an assertion (RFC 8693).
#[derive(Debug, Clone, PartialEq)]
pub struct IdentityProvider {
    /// Its token endpoint.
    pub token_endpoint: String,
    /// The client that the provider knows.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: Option<ConfigValue>,
    /// The user's identity token.
    pub id_token: Option<ConfigValue>,
    /// The file that another program keeps it in.
    pub id_token_file: Option<String>,
}
