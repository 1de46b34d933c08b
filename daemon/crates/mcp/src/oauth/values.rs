//! Values of the entry, filled in when they are needed.

use std::{future::Future, path::PathBuf, pin::Pin, sync::Arc};

use agentd_auth::Secret;
use agentd_protocol::models_file::ConfigValue;

use super::error::OAuthError;

/// A value that is being filled in.
pub(crate) type FilledIn = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Fills in values of the entry: the surroundings of the server know variables and the home directory.
#[derive(Clone)]
pub(crate) struct ValueResolver {
    /// Fills in the value of a key.
    pub(crate) fill_in: Arc<dyn Fn(&'static str, &ConfigValue) -> FilledIn + Send + Sync>,
    /// Makes a path absolute.
    pub(crate) path: Arc<dyn Fn(&str) -> PathBuf + Send + Sync>,
}

impl ValueResolver {
    /// The value of a key, which is a secret from here on.
    ///
    /// # Errors
    /// [`OAuthError::Configuration`].
    pub(crate) async fn resolve(
        &self,
        name: &'static str,
        value: &ConfigValue,
    ) -> Result<Secret, OAuthError> {
        let filled = (self.fill_in)(name, value).await.map_err(OAuthError::Configuration)?;
        agentd_http::register_secret(&filled);
        Ok(Secret::new(filled))
    }

    /// The value of a key, if it has one.
    ///
    /// # Errors
    /// As [`ValueResolver::resolve`].
    pub(crate) async fn optional(
        &self,
        name: &'static str,
        value: Option<&ConfigValue>,
    ) -> Result<Option<Secret>, OAuthError> {
        match value {
            Some(value) => self.resolve(name, value).await.map(Some),
            None => Ok(None),
        }
    }

    /// A path of the entry, absolute.
    pub(crate) fn path(&self, text: &str) -> PathBuf {
        (self.path)(text)
    }
}
