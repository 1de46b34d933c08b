//! The constant parts of every page: style, script, and the policy that allows nothing else.

/// The style sheet.
pub(crate) const STYLE: &str = include_str!("assets/style.css");

/// The script: branches, search, folding, light and dark.
pub(crate) const SCRIPT: &str = include_str!("assets/script.js");

/// The page's permissions: its own style and script, by their hashes, and embedded images. A test computes the hashes.
pub(crate) const POLICY: &str = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; \
    style-src 'sha256-UMyTtxKmRobtCd7v3VhS6LZ3aIF/mlWmxZurwUS86dk='; \
    script-src 'sha256-RKG1953m87MuCOx4po5rk41rzNXAEKTQATASM6ICqc4='";

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_allows_what_is_ours() {
        for (directive, text) in [("style-src", STYLE), ("script-src", SCRIPT)] {
            let expected = format!("{directive} 'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
            assert!(POLICY.contains(&expected), "assets.rs: the policy has to say {expected}");
            // Either would end the element in the middle.
            assert!(!text.contains("</") && !text.contains("<!--"), "{directive}");
        }
    }

    #[test]
    fn nothing_of_ours_points_elsewhere() {
        for word in ["http:", "https:", "//cdn", "@import", "url(", "eval", "innerHTML", "fetch("] {
            assert!(!STYLE.contains(word) && !SCRIPT.contains(word), "{word}");
        }
    }
}
