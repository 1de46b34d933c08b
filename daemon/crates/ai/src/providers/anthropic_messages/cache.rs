//! Cache markers: up to where the provider should keep the prompt.

use super::{
    compat::Compat,
    wire::outgoing::{CacheControl, Role, SystemBlock, Tool, WireMessage},
};
use crate::CacheRetention;

/// The marker to set, if any.
pub(super) fn control(compat: &Compat, retention: CacheRetention) -> Option<CacheControl> {
    let ttl = match retention {
        CacheRetention::None => return None,
        CacheRetention::Short => None,
        CacheRetention::Long => compat.supports_long_cache_retention.then_some("1h"),
    };
    Some(CacheControl { kind: "ephemeral", ttl })
}

/// Marks the system prompt, the last tool, and the end of the conversation unless an answer ends it.
pub(super) fn mark(
    system: &mut [SystemBlock<'_>],
    tools: &mut [Tool<'_>],
    messages: &mut [WireMessage<'_>],
    compat: &Compat,
    control: CacheControl,
) {
    for block in system {
        block.cache_control = Some(control);
    }
    if let Some(tool) = tools.last_mut().filter(|_| compat.supports_cache_control_on_tools) {
        tool.cache_control = Some(control);
    }
    let last = messages.last_mut().filter(|message| message.role == Role::User);
    if let Some(block) = last.and_then(|message| message.content.last_mut()) {
        block.cache_control = Some(control);
    }
}
