//! The law of ignore files; see the crate's `fuzz.rs`.

use std::{path::Path, sync::Arc};

use agentd_ignore_files::{CompiledRules, RulesBudget};

/// Any text is compiled and matched against any path, or is refused with a reason; and its memory is returned to the
/// budget.
pub(crate) fn ignore_files(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let budget = Arc::new(RulesBudget::default());
    match CompiledRules::compile(Path::new("/w"), &text, &budget) {
        Ok(None) => {}
        Ok(Some(globs)) => {
            for line in text.lines().take(8) {
                let path = Path::new("/w").join(line.trim_start_matches(['/', '!']));
                let found = globs.rules().matched(&path, true);
                assert!(found.is_none() || found.is_ignore() || found.is_whitelist());
            }
        }
        Err(error) => assert!(error.to_string().starts_with("has "), "{error}"),
    }
    assert!(Arc::strong_count(&budget) == 1, "something of the budget was kept");
}
