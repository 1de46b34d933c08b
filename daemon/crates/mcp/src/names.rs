//! The names by which models call the tools of servers: `mcp__<server>__<tool>`. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};

use sha2::{Digest as _, Sha256};

/// What every name begins with.
const NAME_START: &str = "mcp__";

/// The longest name that every provider takes.
const MAX_LENGTH: usize = 64;

/// Bytes of a name before the hash that makes it unique.
const BEFORE_HASH: usize = 55;

/// Hexadecimal digits of that hash.
const HASH_DIGITS: usize = 8;

/// The names that were given in a session. One that a tool once had stays its own.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    given: HashMap<(String, String), String>,
}

impl NameTable {
    /// The names of these tools, each `(server, tool)`, in their order. Does not depend on the order, but for names that were given
    /// before.
    pub(crate) fn name(&mut self, tools: &[(&str, &str)]) -> Vec<String> {
        let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
        for (server, tool) in tools {
            *wanted.entry(plain(server, tool)).or_default() += 1;
        }
        let mut taken: HashSet<String> = self.given.values().cloned().collect();
        let mut name = |&(server, tool): &(&str, &str)| {
            let key = (server.to_owned(), tool.to_owned());
            if let Some(name) = self.given.get(&key) {
                return name.clone();
            }
            let plain = plain(server, tool);
            let is_free = plain.len() <= MAX_LENGTH && wanted[&plain] == 1 && !taken.contains(&plain);
            let name = if is_free { plain } else { with_hash(&plain, server, tool) };
            taken.insert(name.clone());
            self.given.insert(key, name.clone());
            name
        };
        tools.iter().map(&mut name).collect()
    }
}

/// What the names of a server's tools begin with, without the last separator.
pub(crate) fn namespace(server: &str) -> String {
    format!("{NAME_START}{}", server.replace('-', "_"))
}

/// Whether a name is that of a tool of a server, and not of one for all of them.
pub(crate) fn is_of_one_server(name: &str) -> bool {
    name.starts_with(NAME_START)
}

/// Whether a name may be that of a tool or prompt of a server; a long one is cut.
pub(crate) fn may_name(server: &str, name: &str) -> bool {
    let begins = format!("{}__", namespace(server));
    let length = begins.len().min(BEFORE_HASH);
    name.get(..length).is_some() && name.get(..length) == begins.get(..length)
}

fn plain(server: &str, tool: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    format!("{NAME_START}{server}__{tool}").chars().map(letter).collect()
}

fn with_hash(plain: &str, server: &str, tool: &str) -> String {
    let hash = Sha256::new().chain_update(server).chain_update([0]).chain_update(tool).finalize();
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}_{}", &plain[..plain.len().min(BEFORE_HASH)], &digits[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(tools: &[(&str, &str)]) -> Vec<String> {
        NameTable::default().name(tools)
    }

    #[test]
    fn names_tell_their_servers() {
        let long = "a".repeat(80);
        for (server, tool) in [("s", "t"), ("s-1", "t"), (long.as_str(), "t"), ("s", long.as_str())] {
            assert!(may_name(server, &names(&[(server, tool)])[0]), "{server}");
        }
        for name in ["mcp__other__t", "mcp__s", "read", "", "mcp__s_1__t"] {
            assert!(!may_name("s", name), "{name}");
        }
    }

    #[test]
    fn names_are_fit_for_every_provider() {
        assert_eq!(names(&[("fs-1", "read.file"), ("fs-1", "é")]), ["mcp__fs_1__read_file", "mcp__fs_1___"]);
        let long = "x".repeat(80);
        let name = &names(&[("s", &long)])[0];
        assert_eq!(name.len(), 64);
        assert!(name.starts_with("mcp__s__xxx") && name.as_bytes()[55] == b'_', "{name}");
    }

    #[test]
    fn all_tools_of_one_plain_name_get_a_hash() {
        let there = names(&[("s", "a.b"), ("s", "a_b"), ("s", "c")]);
        assert!(there[0].starts_with("mcp__s__a_b_") && there[1].starts_with("mcp__s__a_b_"));
        assert_ne!(there[0], there[1]);
        assert_eq!(there[2], "mcp__s__c");
        let back = names(&[("s", "c"), ("s", "a_b"), ("s", "a.b")]);
        assert_eq!([&there[2], &there[1], &there[0]], [&back[0], &back[1], &back[2]]);
    }

    #[test]
    fn a_name_that_was_given_stays() {
        let mut table = NameTable::default();
        assert_eq!(table.name(&[("s", "a.b")]), ["mcp__s__a_b"]);
        let later = table.name(&[("s", "a_b"), ("s", "a.b")]);
        assert_eq!(later[1], "mcp__s__a_b");
        assert_ne!(later[0], later[1]);
        assert_eq!(table.name(&[("s", "a_b")]), later[..1]);
    }

    proptest! {
        #[test]
        fn names_are_short_plain_and_different(
            tools in proptest::collection::hash_set(("[a-c_-]{1,3}", "[a-c._/ ]{0,70}"), 1..12),
        ) {
            let tools: Vec<(&str, &str)> = tools.iter().map(|(one, two)| (one.as_str(), two.as_str())).collect();
            let names = names(&tools);
            let different: HashSet<&String> = names.iter().collect();
            prop_assert_eq!(different.len(), tools.len());
            for name in &names {
                prop_assert!(name.len() <= MAX_LENGTH);
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
            }
        }
    }
}
