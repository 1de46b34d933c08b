//! The built-in model that answers without a provider, for first steps. It is never listed and never chosen unasked.

use std::sync::{Arc, LazyLock};

use agentd_protocol::model::Model;

/// The provider of the demo model. It needs no credentials.
pub const DEMO_PROVIDER: &str = "demo";

/// The id of the demo model.
pub const DEMO_MODEL: &str = "demo";

/// The wire API of the demo model.
pub(super) const DEMO_API: &str = "scripted";

static DEMO: LazyLock<Arc<Model>> = LazyLock::new(|| {
    Arc::new(Model {
        id: DEMO_MODEL.into(),
        name: "Demo".into(),
        api: DEMO_API.into(),
        provider: DEMO_PROVIDER.into(),
        // The adapter plays its built-in script where no script file is named.
        base_url: String::new(),
        input: vec!["text".into()],
        context_window: 32_768,
        max_tokens: 4096,
        ..Model::placeholder()
    })
});

/// The demo model.
pub(super) fn model() -> Arc<Model> {
    Arc::clone(&DEMO)
}
