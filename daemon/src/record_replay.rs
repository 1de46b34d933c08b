//! Recording exchanges with providers, and replaying them: the variables of `--record` and `--replay`.

use std::{path::Path, sync::Arc};

use agentd_ai::{ExchangeMode, Player, PlayerOptions, Recorder, ReplayMatching};
use agentd_config::{Environment, resolve_path};

use crate::logging::complain;

/// The folder that exchanges are written to (`--record`).
pub const RECORD: &str = "AGENTD_RECORD";

/// The folder or file that exchanges are replayed from (`--replay`).
pub const REPLAY: &str = "AGENTD_REPLAY";

/// The part of a request that has to match (`--replay-match`): `body` or `order`.
pub const REPLAY_MATCH: &str = "AGENTD_REPLAY_MATCH";

/// Whether replayed answers take their recorded time (`--replay-timing`): `1`.
pub const REPLAY_TIMING: &str = "AGENTD_REPLAY_TIMING";

/// All of them. They are for this process, and not for those that it starts.
pub const VARIABLES: [&str; 4] = [RECORD, REPLAY, REPLAY_MATCH, REPLAY_TIMING];

/// Opens the recorder or the player. Blocks on the file system.
///
/// # Errors
/// A sentence for stderr.
pub fn open(environment: &Environment, cwd: &Path) -> Result<ExchangeMode, String> {
    let path = |name: &str| Some(resolve_path(environment.non_empty(name)?, cwd, environment));
    match (path(RECORD), path(REPLAY)) {
        (Some(_), Some(_)) => {
            Err(format!("Error: --record ({RECORD}) and --replay ({REPLAY}) cannot be combined"))
        }
        (Some(folder), None) => {
            let recorder =
                Recorder::open(&folder, complain).map_err(|error| format!("Error: --record: {error}"))?;
            Ok(ExchangeMode::Recorded(Arc::new(recorder)))
        }
        (None, Some(source)) => {
            let options = PlayerOptions {
                matching: matching(environment.non_empty(REPLAY_MATCH).unwrap_or("body"))?,
                timing: environment.non_empty(REPLAY_TIMING).is_some_and(|value| value != "0"),
            };
            let player =
                Player::open(&source, options).map_err(|error| format!("Error: --replay: {error}"))?;
            check_spoken(&player)?;
            Ok(ExchangeMode::Replayed(Arc::new(player)))
        }
        (None, None) => Ok(ExchangeMode::Live),
    }
}

/// # Errors
/// A sentence for stderr, where a recording needs a wire API that is not part of this build.
fn check_spoken(player: &Player) -> Result<(), String> {
    let providers = agentd_ai::ProviderRegistry::builtin();
    let silent = player.models().iter().find(|model| providers.get(&model.api).is_none());
    silent.map_or(Ok(()), |model| {
        Err(format!(
            "Error: --replay: {} holds answers of {}/{} over the API \"{}\", which is not part of this version of agentd. It \
             speaks: {}.",
            player.source().display(),
            model.provider,
            model.id,
            model.api,
            providers.apis().collect::<Vec<_>>().join(", ")
        ))
    })
}

/// # Errors
/// A sentence for stderr.
pub fn matching(name: &str) -> Result<ReplayMatching, String> {
    match name {
        "body" => Ok(ReplayMatching::Body),
        "order" => Ok(ReplayMatching::Order),
        other => Err(format!("Error: --replay-match takes body or order, got {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_values_are_errors() {
        let check = |variables: &[(&str, &str)], expected: &str| {
            let environment = variables.iter().copied().collect();
            let error = open(&environment, Path::new("/nowhere")).unwrap_err();
            assert!(error.starts_with("Error: --") && error.contains(expected), "{error}");
        };
        check(&[(RECORD, "a"), (REPLAY, "b")], "cannot be combined");
        check(&[(REPLAY, "b")], "/nowhere/b");
        check(&[(REPLAY, "b"), (REPLAY_MATCH, "soul")], "got soul");
        assert!(matches!(open(&Environment::default(), Path::new("/")), Ok(ExchangeMode::Live)));
    }

    #[test]
    fn a_folder_is_made_where_recordings_go() {
        let home = tempfile::tempdir().unwrap();
        let environment = [(RECORD, "deep/folder")].into_iter().collect();
        assert!(matches!(open(&environment, home.path()), Ok(ExchangeMode::Recorded(_))));
        assert!(home.path().join("deep/folder").is_dir());
    }
}
