//! The law of AWS's files; see `fuzz.rs` of the crate.

use super::profile;

/// Any text reads as sections of values: names in lower case, values of one line. The parsed form, written again, reads as the
/// same.
pub(crate) fn aws_files(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let sections = profile::parse_ini(&text);
    let mut written = String::new();
    let mut expected = sections.clone();
    for (section, values) in &sections {
        assert!(!section.contains('\n'), "{section:?}");
        // A name with quotes or brackets in it, or an empty part, cannot be written so that it reads as the same.
        if section.contains([']', '"', '\'', '\r', '\u{feff}'])
            || section.split_whitespace().collect::<Vec<_>>().join(" ") != *section
        {
            expected.remove(section);
            continue;
        }
        written.push_str(&format!("[{section}]\n"));
        for (name, value) in values {
            assert!(!name.is_empty() && name.trim() == name && value.trim() == value, "{name:?} = {value:?}");
            assert!(!value.contains('\n'));
            let is_plain = !value.starts_with(['#', ';'])
                && !name.starts_with(['[', '#', ';', ' ', '\t', '\u{feff}'])
                && !name.contains('\r')
                && !value.contains('\r');
            if is_plain && *name == name.to_lowercase() {
                written.push_str(&format!("{name} = {value}\n"));
            } else if let Some(section) = expected.get_mut(section) {
                section.remove(name);
            }
        }
    }
    assert_eq!(profile::parse_ini(&written), expected, "{written}");
}
