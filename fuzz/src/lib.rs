//! What the targets share.

/// Holds the law of that name.
///
/// # Panics
/// Where the input breaks it, and for a name that is none.
pub fn hold(laws: &[(&str, fn(&[u8]))], name: &str, input: &[u8]) {
    let law = laws.iter().find(|(known, _)| *known == name).map(|(_, law)| law);
    law.unwrap_or_else(|| panic!("no law {name}"))(input);
}
