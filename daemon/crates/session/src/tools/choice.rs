//! Which tools somebody chose, and where that is kept: in an entry of the session file that other programs pass over.

use agentd_protocol::entry::EntryBody;
use agentd_store::{EntryKind, SessionTree};
use serde::Deserialize;
use serde_json::{Value, json};

/// The `customType` of the entry.
const TYPE: &str = "agentd.active-tools";

/// The names of the active tools, as somebody chose them; `None`: as flags and settings have it.
pub(crate) type ToolChoice = Option<Box<[String]>>;

/// The entry that keeps a choice: `{"tools":[…]}`, or `{}` for what flags and settings say.
pub(crate) fn entry(choice: Option<&[String]>) -> EntryBody {
    let data = choice.map_or_else(|| json!({}), |tools| json!({ "tools": tools }));
    EntryBody::Custom { custom_type: TYPE.to_owned(), data: Some(data) }
}

/// The last choice on the way from the root to the leaf.
pub(crate) fn chosen_on(tree: &SessionTree) -> ToolChoice {
    let branch = tree.branch();
    let mut of_extensions = branch.iter().rev().filter(|entry| entry.kind() == EntryKind::Custom);
    let data = of_extensions.find_map(|entry| match entry.body()? {
        EntryBody::Custom { custom_type, data } if custom_type == TYPE => Some(data),
        _ => None,
    })?;
    read(data?)
}

/// Data of another shape is as good as none.
fn read(data: Value) -> ToolChoice {
    #[derive(Deserialize)]
    struct Data {
        #[serde(default)]
        tools: Option<Vec<String>>,
    }
    serde_json::from_value::<Data>(data).ok()?.tools.map(Into::into)
}

#[cfg(test)]
mod tests {
    use agentd_store::{NewEntry, NewSession, Store, StoreOptions};

    use super::*;

    fn tree_of(bodies: &[EntryBody]) -> SessionTree {
        let store = Store::new(StoreOptions::default());
        let mut tree = store.in_memory(NewSession::new("/w", 0)).unwrap().tree;
        for body in bodies {
            let entry = tree.prepare(NewEntry::from_body(body).unwrap(), 0);
            tree.push(entry);
        }
        tree
    }

    #[test]
    fn the_last_choice_of_the_branch_counts() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (one, two) = (names(&["read"]), names(&[]));
        let other = EntryBody::Custom { custom_type: "other".into(), data: Some(json!({"tools": ["x"]})) };
        assert_eq!(chosen_on(&tree_of(&[])), None);
        assert_eq!(chosen_on(&tree_of(&[entry(Some(&one)), other])), Some(one.clone().into()));
        assert_eq!(chosen_on(&tree_of(&[entry(Some(&one)), entry(Some(&two))])), Some(two.into()));
        assert_eq!(chosen_on(&tree_of(&[entry(Some(&one)), entry(None)])), None);
        let odd = EntryBody::Custom { custom_type: TYPE.into(), data: Some(json!({"tools": 3})) };
        assert_eq!(chosen_on(&tree_of(&[entry(Some(&one)), odd])), None);
    }
}
