//! The built-in model that answers without a provider, for first steps. It is never listed and never chosen unasked.

use std::sync::{Arc, LazyLock};

use agentd_protocol::model::{Model, ModelCost};

/// The provider of the demo model. It needs no credentials.
pub const DEMO_PROVIDER: &str = "demo";

/// The id of the demo model.
pub const DEMO_MODEL: &str = "demo";

static DEMO: LazyLock<Arc<Model>> = LazyLock::new(|| {
    Arc::new(Model {
        id: DEMO_MODEL.into(),
        name: "Demo".into(),
        api: "scripted".into(),
        provider: DEMO_PROVIDER.into(),
        // The adapter plays its built-in script where no script file is named.
        base_url: String::new(),
        reasoning: false,
        thinking_level_map: None,
        input: vec!["text".into()],
        cost: ModelCost::default(),
        context_window: 32_768,
        max_tokens: 4096,
        compat: None,
        sampling_params: None,
    })
});

/// The demo model.
pub(super) fn model() -> Arc<Model> {
    Arc::clone(&DEMO)
}
