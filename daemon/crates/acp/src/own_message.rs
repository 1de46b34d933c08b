//! Pure. Which message of a session is that of the editor's own prompt.

use agentd_protocol::{command::Disposition, message::MessageContent};

/// The message of the editor's own prompt, which the editor shows already. A command (`/name`) is stored as another text than was sent.
#[derive(Debug)]
pub(crate) enum OwnMessage {
    /// The prompt is not taken yet: its text, and whether it has images.
    Sent { text: String, has_images: bool },
    /// It is the next one.
    Next,
    /// It waits behind the run of another client, and is known by its text. About images a note may follow that.
    Queued { text: String, has_images: bool },
    /// It has come.
    Told,
}

impl OwnMessage {
    /// The daemon has taken the prompt. `last_queued` is the message that was queued last.
    pub(crate) fn taken(&mut self, disposition: Disposition, last_queued: Option<String>) {
        *self = match (std::mem::replace(self, Self::Told), disposition) {
            (Self::Sent { .. }, Disposition::Started) => Self::Next,
            (Self::Sent { text, has_images }, Disposition::Queued) => {
                Self::Queued { text: last_queued.unwrap_or(text), has_images }
            }
            _ => Self::Told,
        };
    }

    /// Whether a message is this one.
    pub(crate) fn is_it(&mut self, content: &MessageContent) -> bool {
        let is_it = match self {
            Self::Next => true,
            Self::Queued { text, has_images } => {
                let came = content.text();
                came == *text || (*has_images && came.starts_with(text.as_str()))
            }
            Self::Sent { .. } | Self::Told => false,
        };
        if is_it {
            *self = Self::Told;
        }
        is_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_message_is_known_among_those_of_others() {
        let sent = |has_images| OwnMessage::Sent { text: "/look".into(), has_images };
        let content = |text: &str| MessageContent::Text(text.to_owned());
        let mut own = sent(false);
        assert!(!own.is_it(&content("/look")), "that of another client, before ours was taken");
        own.taken(Disposition::Started, None);
        assert!(own.is_it(&content("Look.")) && !own.is_it(&content("Look.")));
        let mut own = sent(false);
        own.taken(Disposition::Queued, Some("Look.".into()));
        assert!(!own.is_it(&content("Theirs.")) && !own.is_it(&content("Look. More.")));
        assert!(own.is_it(&content("Look.")) && !own.is_it(&content("Look.")));
        let mut own = sent(true);
        own.taken(Disposition::Queued, None);
        assert!(own.is_it(&content("/look\n\n[image left out]")));
    }
}
