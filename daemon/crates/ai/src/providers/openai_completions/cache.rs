//! Cache markers in the form of Anthropic, which some gateways pass on.

use super::{
    compat::Compat,
    wire::outgoing::{CacheControl, ChatMessage, Content, ContentPart, Tool},
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

/// Marks the system prompt, the last tool, and the last text of the conversation.
pub(super) fn mark(messages: &mut [ChatMessage<'_>], tools: Option<&mut [Tool<'_>]>, control: CacheControl) {
    let is_system = |role: &str| matches!(role, "system" | "developer");
    if let Some(first) = messages.first_mut().filter(|message| is_system(message.role)) {
        mark_text(first, control);
    }
    if let Some(tool) = tools.and_then(<[_]>::last_mut) {
        tool.cache_control = Some(control);
    }
    for message in messages.iter_mut().rev().filter(|message| !is_system(message.role)) {
        if mark_text(message, control) {
            break;
        }
    }
}

/// Marks the last text of a message; false when it has none.
fn mark_text(message: &mut ChatMessage<'_>, control: CacheControl) -> bool {
    if let Content::Text(text) = &mut message.content {
        if text.is_empty() {
            return false;
        }
        message.content = Content::Parts(vec![ContentPart::text(std::mem::take(text))]);
    }
    let Content::Parts(parts) = &mut message.content else { return false };
    for part in parts.iter_mut().rev() {
        if let ContentPart::Text { cache_control, .. } = part {
            *cache_control = Some(control);
            return true;
        }
    }
    false
}
