//! Why a request cannot be authorised.

use std::path::PathBuf;

use crate::{AwsProblem, FederationError, GoogleError, RenewError, StoreError, ValueError};

/// Why there are no credentials. The first line says what is missing (clients know these sentences); after a blank line
/// follows what to do.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// No model is chosen that could have credentials.
    #[error(
        "No API key found for the selected model.\n\nNo usable model is configured{}. Give a key (set ANTHROPIC_API_KEY or \
         OPENAI_API_KEY in the environment, or run `agentctl login PROVIDER`), or use a model server of this machine \
         (`agentctl setup local`, or a provider in {}), and start again. `agentctl doctor` says what is missing; with --demo \
         the built-in demo model answers.",
        empty(empty_variables),
        models_file.display()
    )]
    NoModel {
        /// Variables that hold keys, and are set without one.
        empty_variables: Vec<String>,
        /// The file that configures models.
        models_file: PathBuf,
    },
    /// No source has a key.
    #[error("No API key found for {provider}.\n\n{advice}")]
    NoKey {
        /// The provider.
        provider: String,
        /// Advice on where to put a key.
        advice: String,
    },
    /// A key is configured and does not resolve.
    #[error("No API key found for {provider}.\n\nThe key in {place} cannot be used: {source}.")]
    Unresolved {
        /// The provider.
        provider: String,
        /// The configuration that names the key.
        place: String,
        /// Why.
        source: ValueError,
    },
    /// Something else than a usable key is stored. Other sources are not tried: they may belong to another account.
    #[error("No API key found for {provider}.\n\nThe entry \"{provider}\" in {} cannot be used: {problem}. Repair or remove it.", file.display())]
    UnusableEntry {
        /// The provider.
        provider: String,
        /// The file of stored credentials.
        file: PathBuf,
        /// The fault.
        problem: String,
    },
    /// The tokens of a login have ended, or are refused, and there are no new ones.
    #[error(
        "Authentication failed for \"{provider}\". Credentials may have expired or network is unavailable. Run '/login \
         {provider}' to re-authenticate.\n\nThe login of {provider} in {} cannot be renewed: {problem}. {advice}",
        file.display()
    )]
    Login {
        /// The provider.
        provider: String,
        /// The file of stored credentials.
        file: PathBuf,
        /// Why.
        problem: Box<RenewError>,
        /// The advice, in sentences.
        advice: String,
    },
    /// Google's credentials of this machine give no token.
    #[error(
        "No API key found for {provider}.\n\nThe application default credentials cannot be used: {problem}. They need a file \
         (`gcloud auth application-default login` writes one, GOOGLE_APPLICATION_CREDENTIALS names another), \
         GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION; GOOGLE_CLOUD_API_KEY or `agentctl login {provider}` gives a key instead."
    )]
    Google {
        /// The provider.
        provider: String,
        /// Why.
        problem: GoogleError,
    },
    /// Anthropic's workload identity gives no token.
    #[error(
        "No API key found for {provider}.\n\nThe federated identity of the ANTHROPIC_FEDERATION_* variables cannot be used: \
         {problem}. ANTHROPIC_API_KEY or `agentctl login {provider}` gives a key instead."
    )]
    Federation {
        /// The provider.
        provider: String,
        /// Why.
        problem: FederationError,
    },
    /// The address has a part that comes from a variable, and nothing has it.
    #[error(
        "The address of {provider} needs {variable}.\n\nSet it in the environment, or store it with the key: `agentctl \
         login {provider} --env {variable}=...`."
    )]
    NoAddress {
        /// The provider.
        provider: String,
        /// The variable.
        variable: String,
    },
    /// The address is put together from the user's settings, and they do not make one.
    #[error("The address of {provider} is not known: {problem}.")]
    BadAddress {
        /// The provider.
        provider: String,
        /// The fault and the advice.
        problem: String,
    },
    /// The keys of AWS cannot be had.
    #[error("No API key found for {provider}.\n\n{problem}")]
    Aws {
        /// The provider.
        provider: String,
        /// The fault and the advice.
        problem: AwsProblem,
    },
    /// A configured header does not resolve.
    #[error("The header \"{header}\" of {provider} in {} cannot be used: {source}.", file.display())]
    Header {
        /// The provider.
        provider: String,
        /// The header's name.
        header: String,
        /// The file that configures it.
        file: PathBuf,
        /// Why.
        source: ValueError,
    },
    /// The file of stored credentials is broken.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Says which variables are set without a value: to their user it looks as if there was a key.
fn empty(variables: &[String]) -> String {
    match variables {
        [] => String::new(),
        [one] => format!(": {one} is set and empty"),
        [first @ .., last] => format!(": {} and {last} are set and empty", first.join(", ")),
    }
}
