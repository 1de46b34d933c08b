//! What the entries of a session spent that are its own.

use crate::{
    Entry, SessionTree, Spending,
    counts::EntryCounts,
    spending::{is_own, spending},
    time::parse_timestamp,
};

/// What the entries of a session spent, of every branch; without those that a fork took over, which are older than the fork's
/// header.
pub fn own_spending(tree: &SessionTree) -> impl Iterator<Item = Spending> {
    let begun = parse_timestamp(&tree.header().typed().timestamp);
    let is_own = move |entry: &&Entry| is_own(entry, begun);
    tree.entries().iter().filter(is_own).filter_map(spending)
}

/// What the entries of a session from number `first` on cost, in US dollars; without those that a fork took over, as [`own_spending`]. For
/// all of them that is kept while they come, so that asking costs nothing.
#[must_use]
pub fn own_cost(tree: &SessionTree, first: usize) -> f64 {
    if first == 0 {
        return tree.own_cost();
    }
    let begun = parse_timestamp(&tree.header().typed().timestamp);
    let entries = tree.entries().get(first..).unwrap_or_default().iter().filter(|entry| is_own(entry, begun));
    entries.map(|entry| EntryCounts::of(entry).spent).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_that_is_kept_is_that_of_the_entries() {
        let answer = |id: &str, day: u32, cost: &str| {
            format!(
                r#"{{"type":"message","id":"{id}","parentId":null,"timestamp":"202{day}-01-01T00:00:00.000Z","message":{{"role":"assistant","content":[],{cost}}}}}"#
            )
        };
        let usage = |cost: f64| format!(r#""usage":{{"input":1,"cost":{{"total":{cost}}}}}"#);
        let custom = format!(
            r#"{{"type":"custom","id":"d","parentId":null,"customType":"spending","data":{{{}}}}}"#,
            usage(0.125)
        );
        // The session began in 2026. One without a model that could be read spent nothing.
        let lines = [
            answer("a", 5, &usage(9.0)),
            answer("b", 7, &usage(0.5)),
            answer("c", 8, &format!("{},\"model\":7", usage(4.0))),
            custom,
            answer("e", 9, &usage(0.25)),
        ];
        let tree = crate::testing::tree(&lines.each_ref().map(String::as_str));
        let by_entry = |from: usize| -> f64 {
            let own = own_spending(&tree).map(|spent| spent.usage.cost.total);
            own.skip(from).sum()
        };
        assert_eq!((own_cost(&tree, 0), by_entry(0)), (0.875, 0.875));
        // From the second entry on there are three that spent.
        assert_eq!(own_cost(&tree, 1), 0.875);
        assert_eq!((own_cost(&tree, 2), by_entry(1)), (0.375, 0.375));
        assert_eq!(own_cost(&tree, 5), 0.0);
    }
}
