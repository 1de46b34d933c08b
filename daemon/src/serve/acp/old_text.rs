//! The text of a file before a call changes it.

use agentd_acp::FileRead;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

use crate::limits::MAX_ACP_OLD_TEXT;

/// Reads a file: the outer `None` for one whose text cannot be told, the inner one where none is there. Blocks.
pub(super) fn old_text(read: &FileRead) -> Option<Option<String>> {
    let rules =
        OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_ACP_OLD_TEXT);
    match rules.read(&read.path) {
        Ok(None) => Some(None),
        Ok(Some(bytes)) => String::from_utf8(bytes).ok().map(Some),
        Err(error) => {
            // The call itself reports what is wrong with the file.
            tracing::debug!(%error, "a file is not shown as it was");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_of_moderate_length_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| {
            old_text(&FileRead { session: "s".into(), call: "c".into(), path: folder.path().join(name) })
        };
        std::fs::write(folder.path().join("text"), "a").unwrap();
        std::fs::write(folder.path().join("bytes"), b"\xff").unwrap();
        std::fs::write(folder.path().join("long"), vec![b'a'; (1 << 20) + 1]).unwrap();
        assert_eq!(read("text"), Some(Some("a".into())));
        assert_eq!(read("missing"), Some(None));
        assert_eq!((read("bytes"), read("long"), read(".")), (None, None, None));
    }
}
