//! Pure. The revisions of the protocol that are spoken, and which one a request is of.

/// The newest revision with a handshake.
pub(crate) const NEWEST_LEGACY: &str = "2025-11-25";

/// The stateless revision.
pub(crate) const MODERN: &str = "2026-07-28";

/// The revisions with a handshake, newest first.
const LEGACY: [&str; 5] = [NEWEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/// The era of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// With a handshake, and requests of the server.
    Legacy,
    /// Stateless: what the server wants to know stands in its result.
    Modern,
}

/// The revision to answer `initialize` with: the one that was asked for, else the newest that has a handshake.
pub(crate) fn negotiated(asked: &str) -> &'static str {
    LEGACY.into_iter().find(|version| *version == asked).unwrap_or(NEWEST_LEGACY)
}

/// Whether forms of the revision have a `mode`, and options with titles of their own. Revisions are dates, and compare as text.
pub(crate) fn has_titled_options(version: &str) -> bool {
    version >= NEWEST_LEGACY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_that_is_not_known_is_answered_with_the_newest_that_has_a_handshake() {
        for (asked, expected) in [
            ("2025-11-25", "2025-11-25"),
            ("2025-03-26", "2025-03-26"),
            ("2026-07-28", "2025-11-25"),
            ("1", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(negotiated(asked), expected, "{asked}");
        }
    }

    #[test]
    fn options_have_titles_since_the_revision_that_added_them() {
        assert!(has_titled_options(NEWEST_LEGACY) && has_titled_options(MODERN));
        assert!(!has_titled_options("2025-06-18"));
    }
}
