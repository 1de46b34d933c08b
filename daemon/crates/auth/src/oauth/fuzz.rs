//! The law of what a browser brings back; see `fuzz.rs` of the crate.

use super::callback::{CallbackOutcome, ExpectedCallback, read_pasted, read_target};

/// A code is taken only with the state of the login; what the provider says is shown in one bounded line.
pub(crate) fn login_callbacks(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let expected = ExpectedCallback { path: "/cb".into(), state: Some("st-4711".into()) };
    for (found, is_pasted) in [(read_target(&text, &expected), false), (read_pasted(&text, &expected), true)]
    {
        match found.map(|callback| callback.outcome) {
            Ok(CallbackOutcome::Code(code)) => {
                assert!(!code.expose().is_empty());
                // Addresses are read without line breaks and tabs.
                let plain = text.replace(['\r', '\n', '\t'], "");
                let has_state = plain.contains("st-4711") || plain.contains('%');
                // A code alone can be pasted.
                assert!(has_state || (is_pasted && !text.contains(['?', '#'])), "{text:?}");
            }
            Ok(CallbackOutcome::Denied(why)) => {
                assert!(why.len() < 4096 && !why.contains(['\n', '\u{1b}']), "{why:?}");
            }
            Err(status) => assert!(!status.is_empty()),
        }
    }
}
