//! The offers for what is being typed.

use agentd_client_text::FuzzyQuery;

use crate::{
    app::{chat::Chat, commands::OWN, messages::Effect},
    complete::{Offer, Wanted, wanted},
};

/// How many commands are offered.
const MOST_OFFERS: usize = 50;

/// Brings the offers up to date with what is typed.
pub(super) fn refresh(chat: &mut Chat) -> Vec<Effect> {
    let wanted = wanted(chat.editor.text(), chat.editor.cursor());
    if wanted.is_none() {
        chat.completions.clear();
        return Vec::new();
    }
    if wanted == chat.completions.closed_for || wanted == chat.completions.wanted {
        return Vec::new();
    }
    chat.completions.closed_for = None;
    chat.completions.selected = 0;
    let effects = match &wanted {
        Some(Wanted::Command(name)) => {
            chat.completions.offers = commands(chat, name);
            Vec::new()
        }
        Some(Wanted::File { query, .. }) => {
            if query.is_empty() {
                chat.completions.offers.clear();
            }
            vec![Effect::FindFiles(query.clone())]
        }
        None => Vec::new(),
    };
    chat.completions.wanted = wanted;
    effects
}

fn commands(chat: &Chat, name: &str) -> Vec<Offer> {
    let own = OWN.iter().map(|own| Offer { text: own.name.to_owned(), about: own.about.to_owned() });
    let theirs = chat.commands.iter().map(|command| Offer {
        text: command.name.clone(),
        about: command.description.clone().unwrap_or_default(),
    });
    let query = FuzzyQuery::new(name);
    let mut found: Vec<(i64, Offer)> =
        own.chain(theirs).filter_map(|offer| Some((query.score_of_name(&offer.text)?, offer))).collect();
    if !name.is_empty() {
        found.sort_by_key(|(score, _)| -score);
    }
    found.truncate(MOST_OFFERS);
    found.into_iter().map(|(_, offer)| offer).collect()
}

/// Takes the files that were found; those for an earlier query are too late.
pub(super) fn files(chat: &mut Chat, query: &str, files: Vec<String>) {
    if matches!(&chat.completions.wanted, Some(Wanted::File { query: wanted, .. }) if wanted == query) {
        chat.completions.offers =
            files.into_iter().map(|text| Offer { text, about: String::new() }).collect();
        chat.completions.selected = 0;
    }
}

/// Puts the chosen offer in; false where there is none.
pub(super) fn accept(chat: &mut Chat) -> bool {
    let Some(offer) = chat.completions.chosen().cloned() else { return false };
    match chat.completions.wanted.clone() {
        Some(Wanted::Command(_)) => chat.editor.replace_back(0, &format!("/{} ", offer.text)),
        Some(Wanted::File { at, .. }) => {
            // A folder is gone on from; a file is complete.
            let space = if offer.text.ends_with('/') { "" } else { " " };
            chat.editor.replace_back(at, &format!("@{}{space}", quoted(&offer.text)));
        }
        None => return false,
    }
    chat.completions.clear();
    true
}

/// A path with blanks stands in quotes.
fn quoted(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("\"{path}\"") } else { path.to_owned() }
}
