//! The form of AWS's configuration files: sections of `name = value` lines.

use std::collections::BTreeMap;

/// The sections of a file, by the text between their brackets.
pub(super) type Sections = BTreeMap<String, Section>;

/// The values of a section, by name in small letters.
pub(super) type Section = BTreeMap<String, String>;

/// Reads a file. It never fails: lines that are neither section nor value are skipped, as AWS's own programs do. Lines that
/// begin with white space continue the value before them, and none of those is needed here.
pub(super) fn read(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut current: Option<&mut Section> = None;
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.split_once(']').map(|(name, _)| normalized(name));
            current = name.map(|name| sections.entry(name).or_default());
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim().to_lowercase(), without_remark(value).trim());
        if let Some(section) = current.as_deref_mut().filter(|_| !name.is_empty()) {
            section.insert(name, value.to_owned());
        }
    }
    sections
}

/// A section's name with single spaces, and without quotes around its last part.
fn normalized(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    words.join(" ")
}

/// A value up to a remark, which begins with white space.
fn without_remark(value: &str) -> &str {
    let ends = [" #", " ;", "\t#", "\t;"].into_iter().filter_map(|mark| value.find(mark));
    &value[..ends.min().unwrap_or(value.len())]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sections_and_values() {
        let text = "\u{feff}lost = 1\r\n[default]\r\nRegion=eu-west-1 # here\r\n\n# remark\n; remark\n[profile  \"my dev\"]\nkey = a=b;c\n\
                    s3 =\n  region = nested\n\tkey = nested\nno value\n= no name\n[broken\nkey = lost\n[default]\noutput = json\n[]\nx = y\n";
        let sections = read(text);
        let section = |name: &str| {
            let section = sections.get(name)?.iter();
            Some(section.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(section("default").as_deref(), Some("output=json region=eu-west-1"));
        assert_eq!(section("profile my dev").as_deref(), Some("key=a=b;c s3="));
        assert_eq!(section("").as_deref(), Some("x=y"));
        assert_eq!(sections.len(), 3);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\PC|[\\[\\]=# \n\r\t\u{0}]){0,200}") {
            read(&text);
        }
    }
}
