//! What the entries of a session spent that are its own.

use crate::{
    Entry, SessionTree, Spending,
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
        let by_entry: f64 = own_spending(&tree).map(|spent| spent.usage.cost.total).sum();
        assert_eq!((tree.own_cost(), by_entry), (0.875, 0.875));
    }
}
