//! A provider with what extensions and the file say about it.

use super::{file_provider::Patched, provider_config::ProviderConfig};

/// A provider with what extensions and the file say about it.
#[derive(Debug)]
pub(super) struct Extended {
    pub(super) config: ProviderConfig,
    pub(super) models: Patched,
}
