//! What proves that the one who comes with a code is the one who began (RFC 7636), and what cannot be guessed.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};

use crate::Secret;

/// A verifier and its challenge.
pub(super) struct Pkce {
    pub(super) verifier: Secret,
    pub(super) challenge: String,
}

impl Pkce {
    /// A new pair; `None` when the system has no random numbers.
    pub(super) fn new() -> Option<Self> {
        let verifier = random()?;
        let challenge = challenge(&verifier);
        Some(Self { verifier: Secret::new(verifier), challenge })
    }
}

/// 256 random bits in letters, digits, `-` and `_`.
pub(super) fn random() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_ne!(random().unwrap(), random().unwrap());
        assert_eq!(Pkce::new().unwrap().verifier.expose().len(), 43);
    }
}
