//! The scopes that a sign-in asks for. Pure.

use std::collections::BTreeSet;

/// What scopes can be chosen from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ScopeSources<'a> {
    /// Those of the entry.
    pub(crate) configured: Option<&'a str>,
    /// Those that the server asks for.
    pub(crate) challenged: Option<&'a str>,
    /// Those that the server knows.
    pub(crate) of_resource: Option<&'a [String]>,
    /// Those that the authorization server knows.
    pub(crate) of_server: Option<&'a [String]>,
    /// Those that an earlier sign-in asked for, where the server has asked for more since.
    pub(crate) before: Option<&'a str>,
    /// Whether a refresh token is of use.
    pub(crate) offline: bool,
}

/// The scope that makes a server give a refresh token.
const OFFLINE: &str = "offline_access";

/// The scopes to ask for; `None` for no parameter at all.
pub(crate) fn choose(sources: ScopeSources<'_>) -> Option<String> {
    let of_resource = sources.of_resource.map(|scopes| scopes.join(" "));
    let chosen = match (sources.configured, sources.challenged, of_resource) {
        // What the server asks for beyond the user's choice comes with a step-up only.
        (Some(configured), challenged, _) => {
            let more = sources.before.and(challenged).unwrap_or_default();
            Some(union(configured, more))
        }
        (None, Some(challenged), _) => Some(challenged.to_owned()),
        (None, None, of_resource) => of_resource,
    };
    let chosen = union(sources.before.unwrap_or_default(), chosen.as_deref().unwrap_or_default());
    let knows_offline = sources.of_server.is_some_and(|scopes| scopes.iter().any(|scope| scope == OFFLINE));
    let chosen =
        if sources.offline && knows_offline && !chosen.is_empty() { union(&chosen, OFFLINE) } else { chosen };
    (!chosen.is_empty()).then_some(chosen)
}

/// The scopes of both, each once, in their order.
pub(crate) fn union(one: &str, other: &str) -> String {
    let mut seen = BTreeSet::new();
    let all = one.split_whitespace().chain(other.split_whitespace());
    all.filter(|scope| seen.insert(*scope)).collect::<Vec<_>>().join(" ")
}

/// Whether `all` holds every scope of `part`.
pub(crate) fn holds(all: &str, part: &str) -> bool {
    let all: BTreeSet<&str> = all.split_whitespace().collect();
    part.split_whitespace().all(|scope| all.contains(scope))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scopes_come_from_the_first_source_that_has_some() {
        let list = |scopes: &[&str]| scopes.iter().map(|scope| (*scope).to_owned()).collect::<Vec<_>>();
        let (resource, server) = (list(&["r1", "r2"]), list(&["r1", "offline_access"]));
        let check = |sources: ScopeSources<'_>, expected: Option<&str>| {
            assert_eq!(choose(sources).as_deref(), expected, "{sources:?}");
        };
        let all = ScopeSources {
            configured: Some("c"),
            challenged: Some("ch"),
            of_resource: Some(&resource),
            of_server: None,
            before: None,
            offline: true,
        };
        check(all, Some("c"));
        check(ScopeSources { before: Some("old"), ..all }, Some("old c ch"));
        check(ScopeSources { configured: None, ..all }, Some("ch"));
        check(ScopeSources { configured: None, before: Some("old ch"), ..all }, Some("old ch"));
        let of_resource = ScopeSources { configured: None, challenged: None, ..all };
        check(of_resource, Some("r1 r2"));
        check(ScopeSources { of_server: Some(&server), ..of_resource }, Some("r1 r2 offline_access"));
        check(ScopeSources { of_server: Some(&server), offline: false, ..of_resource }, Some("r1 r2"));
        check(ScopeSources { of_resource: None, ..of_resource }, None);
        check(ScopeSources { of_resource: Some(&[]), ..of_resource }, None);
    }

    proptest! {
        #[test]
        fn a_union_holds_both_and_nothing_twice(one in "[a-c ]{0,12}", other in "[b-e ]{0,12}") {
            let all = union(&one, &other);
            prop_assert!(holds(&all, &one) && holds(&all, &other));
            let count = all.split_whitespace().count();
            prop_assert_eq!(count, all.split_whitespace().collect::<BTreeSet<_>>().len());
            prop_assert_eq!(holds(&one, &other), union(&one, &other) == union(&one, ""));
        }
    }
}
