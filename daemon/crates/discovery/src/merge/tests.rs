use std::collections::{BTreeMap, BTreeSet};

use agentd_protocol::{capabilities::GetCapabilitiesParams, settings::DiscoverySettings};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::provider::Provider;

const FOREIGN: Provider = Provider::new("claude", "Claude Code", 80, true);

fn item(kind: CapabilityKind, name: &str, path: &str, provider: Provider, level: CapabilityLevel) -> Item {
    Item::new(kind, name, path, (provider, level))
}

fn server(name: &str, path: &str, entry: &Value) -> Item {
    let detail = ItemDetail::Server(entry.as_object().unwrap().clone());
    Item { detail, ..item(CapabilityKind::Mcps, name, path, FOREIGN, CapabilityLevel::Project) }
}

fn snapshot(items: Vec<Item>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.items = items.into_iter().map(Arc::new).collect();
    snapshot
}

fn standings(
    own: Vec<OwnItem>,
    items: Vec<Item>,
    switches: &Switches,
    trusted: bool,
) -> Vec<(String, Standing)> {
    let merged = merge(own, &snapshot(items), switches, trusted);
    let shown = merged.items.iter().map(|it| (it.item.path.display().to_string(), it.standing.clone()));
    shown.collect()
}

#[test]
fn own_files_come_before_those_of_other_tools_and_after_those_of_agentd() {
    let of = |path, provider| item(CapabilityKind::Skills, "a", path, provider, CapabilityLevel::Project);
    let pi = Provider { id: "agents-md", ..FOREIGN };
    let own = OwnItem { item: of("/pi", pi), waits_for_trust: false, reason: None };
    let found = standings(
        vec![own],
        vec![of("/foreign", FOREIGN), of("/native", NATIVE)],
        &Switches::default(),
        false,
    );
    let shadowed = |by: &str| Standing::Shadowed(by.into());
    assert_eq!(
        found,
        [
            ("/native".to_owned(), Standing::Counts),
            ("/pi".to_owned(), shadowed("/native")),
            ("/foreign".to_owned(), shadowed("/native")),
        ]
    );
}

#[test]
fn only_what_counts_or_is_switched_off_in_its_file_shadows_others() {
    let entry = json!({"command": "a"});
    let mut off = server("s", "/off", &entry);
    off.is_switched_off = true;
    let mut broken = server("s", "/broken", &entry);
    broken.no_effect = Some("broken");
    let user = Item { level: CapabilityLevel::User, ..server("s", "/user", &json!({"command": "b"})) };
    let items = vec![broken, off, user.clone()];
    let found = standings(Vec::new(), items.clone(), &Switches::default(), true);
    let standing: Vec<Standing> = found.into_iter().map(|(_, standing)| standing).collect();
    assert_eq!(
        standing,
        [Standing::NoEffect("broken".into()), Standing::SwitchedOff, Standing::Shadowed("/off".into())]
    );
    // Without trust the project's entry switches nothing off.
    let found = standings(Vec::new(), items[1..].to_vec(), &Switches::default(), false);
    assert_eq!(found[0].1, Standing::WaitsForTrust);
    assert_eq!(found[1].1, Standing::Counts);
    let settings =
        DiscoverySettings { disabled_items: Some(vec!["mcp:s".into()]), ..DiscoverySettings::default() };
    let found = standings(Vec::new(), vec![user], &Switches::of(Some(&settings)), true);
    assert_eq!(found[0].1, Standing::Disabled);
}

#[test]
fn a_server_under_two_names_counts_once() {
    let items = vec![
        server("a", "/1", &json!({"command": "x", "args": ["1"]})),
        server("b", "/2", &json!({"command": "x", "args": ["2"]})),
        server("c", "/3", &json!({"command": "x", "args": ["1"], "timeout": 3})),
        server("d", "/4", &json!({"url": "https://x", "headers": {"A": "1"}})),
        server("e", "/5", &json!({"url": "https://x", "headers": {"A": "2"}})),
    ];
    let found = standings(Vec::new(), items, &Switches::default(), true);
    let counts: Vec<bool> = found.iter().map(|(_, standing)| standing.counts()).collect();
    assert_eq!(counts, [true, true, false, true, true]);
    assert_eq!(found[2].1, Standing::SameServer("a".into()));
}

#[test]
fn context_files_count_once_for_each_folder() {
    let of = |path: &str, distance, level| Item::context(path, distance, (FOREIGN, level));
    let items = vec![
        of("/p/.claude/CLAUDE.md", Some(0), CapabilityLevel::Project),
        of("/p/GEMINI.md", Some(0), CapabilityLevel::Project),
        of("/GEMINI.md", Some(1), CapabilityLevel::Project),
        of("/home/.claude/CLAUDE.md", None, CapabilityLevel::User),
        of("/home/.gemini/GEMINI.md", None, CapabilityLevel::User),
    ];
    let found = standings(Vec::new(), items, &Switches::default(), false);
    let counts: Vec<bool> = found.iter().map(|(_, standing)| standing.counts()).collect();
    assert_eq!(counts, [true, false, true, true, false]);
}

proptest! {
    #[test]
    fn the_first_of_each_key_counts_and_nothing_is_lost(
        found in prop::collection::vec((0_usize..15, "[a-c]", any::<[bool; 4]>()), 0..40),
        trusted: bool,
        disabled in prop::option::of("[a-c]"),
    ) {
        let items: Vec<Item> = found.iter().enumerate().map(|(number, (kind, name, [native, user, off, broken]))| {
            let provider = if *native { NATIVE } else { FOREIGN };
            let level = if *user { CapabilityLevel::User } else { CapabilityLevel::Project };
            let mut item = item(CapabilityKind::ALL[*kind], name, &format!("/{number}"), provider, level);
            item.is_switched_off = *off;
            item.no_effect = broken.then_some("broken");
            item
        }).collect();
        let list = disabled.iter().map(|name| format!("rule:{name}")).collect();
        let settings = DiscoverySettings { disabled_items: Some(list), ..DiscoverySettings::default() };
        let switches = Switches::of(Some(&settings));
        let merged = merge(Vec::new(), &snapshot(items.clone()), &switches, trusted);
        let paths: BTreeSet<_> = merged.items.iter().map(|it| it.item.path.clone()).collect();
        prop_assert_eq!(paths.len(), items.len());
        prop_assert!(merged.items.windows(2).all(|pair| pair[0].item.kind <= pair[1].item.kind));
        let mut first: BTreeMap<_, &ListedItem> = BTreeMap::new();
        for listed in &merged.items {
            let key = (listed.item.kind, listed.item.key.clone());
            match &listed.standing {
                Standing::Counts | Standing::SwitchedOff => {
                    prop_assert!(first.insert(key, listed).is_none(), "two of one key");
                }
                Standing::Shadowed(path) => prop_assert_eq!(&first[&key].item.path, path),
                Standing::LeftOut => prop_assert!(switches.leaves_out(&listed.item.id)),
                Standing::Disabled => prop_assert!(switches.disables(&listed.item.id)),
                Standing::WaitsForTrust => prop_assert!(!trusted && listed.item.kind.needs_trust()),
                Standing::NoEffect(_) => prop_assert!(listed.item.no_effect.is_some()),
                Standing::SameServer(_) => prop_assert!(false, "no server has an entry here"),
            }
        }
        let all = merged.list(&GetCapabilitiesParams { kind: None, include_shadowed: true });
        prop_assert_eq!(all.items.len(), items.len());
        let counting = merged.list(&GetCapabilitiesParams::default());
        prop_assert!(counting.items.iter().all(|item| !item.shadowed));
        prop_assert_eq!(counting.items.len() + merged.shadowed(), items.len());
    }
}
