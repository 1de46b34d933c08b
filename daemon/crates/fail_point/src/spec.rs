//! Reads what a test asked for.

use crate::{Point, VARIABLE};

/// What happens at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Kill,
    Torn,
    Short,
    Panic,
    /// With the number of an error.
    Fail(i32),
}

/// A place, and when what happens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Armed {
    pub(crate) point: Point,
    /// At which passing, from 1.
    pub(crate) from: u64,
    /// At every later one, too.
    pub(crate) and_later: bool,
    pub(crate) action: Action,
}

/// The errors that calls can fail with. The numbers are those of Linux and of every Unix that agentd is built for.
const ERRORS: &[(&str, i32)] = &[("enospc", 28), ("eio", 5), ("erofs", 30), ("eacces", 13), ("emfile", 24)];

pub(crate) fn parse(text: &str) -> Result<Vec<Armed>, String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(item).collect()
}

fn item(text: &str) -> Result<Armed, String> {
    let wrong = |what: String| format!("{VARIABLE}: {what} in \"{text}\": expected NAME[@N[+]][:ACTION]");
    let (place, action) = text.split_once(':').unwrap_or((text, "kill"));
    let (name, time) = place.split_once('@').unwrap_or((place, "1"));
    let (time, and_later) = time.strip_suffix('+').map_or((time, false), |time| (time, true));
    let point = Point::ALL.iter().copied().find(|point| point.name() == name);
    let point = point.ok_or_else(|| {
        let all: Vec<&str> = Point::ALL.iter().map(|point| point.name()).collect();
        format!("{VARIABLE}: no fail point is called \"{name}\"; there are: {}", all.join(", "))
    })?;
    let from = time.parse().ok().filter(|from| *from > 0);
    let from = from.ok_or_else(|| wrong(format!("\"{time}\" is no number from 1")))?;
    let action = match action {
        "kill" => Action::Kill,
        "torn" => Action::Torn,
        "short" => Action::Short,
        "panic" => Action::Panic,
        other => {
            let error = ERRORS.iter().find(|(name, _)| *name == other);
            Action::Fail(error.ok_or_else(|| wrong(format!("no action is called \"{other}\"")))?.1)
        }
    };
    Ok(Armed { point, from, and_later, action })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let armed = |from, and_later, action| Armed { point: Point::StoreAppend, from, and_later, action };
        for (text, expected) in [
            ("store.append", armed(1, false, Action::Kill)),
            ("store.append@3", armed(3, false, Action::Kill)),
            ("store.append@2+:enospc", armed(2, true, Action::Fail(28))),
            (" store.append:torn ,", armed(1, false, Action::Torn)),
            ("store.append@7:short", armed(7, false, Action::Short)),
            ("store.append:panic", armed(1, false, Action::Panic)),
        ] {
            assert_eq!(parse(text), Ok(vec![expected]), "{text}");
        }
        assert_eq!(parse("store.append,store.sync:eio").map(|all| all.len()), Ok(2));
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for (text, named) in [
            ("store.apend", "\"store.apend\""),
            ("store.append@0", "\"0\""),
            ("store.append@x", "\"x\""),
            ("store.append:explode", "\"explode\""),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named) && error.contains(VARIABLE), "{error}");
        }
    }
}
