//! `agentctl models --update` and `--reset-catalogue`.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use agentd_protocol::model_list::{CatalogueUpdate, UpdateModelsParams};

use crate::{
    cli::ModelsOptions,
    commands::daemon_call,
    exit::{Exit, Fault},
    output,
    render::one_line,
    rpc::UpdateModels,
};

/// The most that is read of stdin: 32 MiB, agentd's limit for a file. Escaped as JSON it still fits into one line.
const MOST_OF_STDIN: u64 = 32 << 20;

/// The update that the flags ask for; `None` for a list of models.
pub(super) fn params(options: &ModelsOptions) -> Result<Option<UpdateModelsParams>, Fault> {
    let params = match &options.update {
        Some(path) if path == Path::new("-") => {
            UpdateModelsParams { text: Some(stdin()?), ..UpdateModelsParams::default() }
        }
        Some(path) => UpdateModelsParams { path: Some(absolute(path)?), ..UpdateModelsParams::default() },
        None if options.reset_catalogue => {
            UpdateModelsParams { reset: Some(true), ..UpdateModelsParams::default() }
        }
        None => return Ok(None),
    };
    Ok(Some(params))
}

/// Updates the catalogue and prints the changes.
pub(super) fn run(params: &UpdateModelsParams, json: bool) -> Result<Exit, Fault> {
    let update = daemon_call::private_quietly::<UpdateModels>(params)?;
    if json { output::print_json(&update) } else { output::print(&report(&update)) }
}

fn stdin() -> Result<String, Fault> {
    let fault = |what: String| Fault::new(Exit::Failed, format!("agentctl: stdin {what}"));
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MOST_OF_STDIN + 1).read_to_end(&mut bytes);
    read.map_err(|error| fault(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_OF_STDIN {
        return Err(fault("is larger than 32 MiB: name a file".into()));
    }
    String::from_utf8(bytes)
        .map_err(|error| fault(format!("is not UTF-8 text (byte {})", error.utf8_error().valid_up_to())))
}

fn absolute(path: &Path) -> Result<String, Fault> {
    let fault = |what: String| {
        Fault::new(Exit::Failed, format!("agentctl: {}: {what}", one_line(&path.to_string_lossy())))
    };
    let absolute = std::path::absolute(path).map_err(|error| fault(error.to_string()))?;
    let text = absolute.into_os_string().into_string();
    text.map_err(|path| fault(format!("the path {} is not UTF-8", PathBuf::from(path).display())))
}

/// The changes, in lines.
fn report(update: &CatalogueUpdate) -> String {
    let mut lines = vec![
        format!("Catalogue: {}.", update.catalogue),
        format!("{} of {}.", counted(update.models, "model"), counted(update.providers, "provider")),
    ];
    let models = [
        (update.added_models, "added"),
        (update.removed_models, "removed"),
        (update.changed_models, "changed"),
    ];
    let models: Vec<String> = models
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    lines.push(match models.is_empty() {
        true => "Nothing has changed about its models.".to_owned(),
        false => format!("Models: {}.", models.join(", ")),
    });
    for (what, providers) in [("added", &update.added_providers), ("removed", &update.removed_providers)] {
        if !providers.is_empty() {
            lines.push(format!("Providers {what}: {}.", providers.join(", ")));
        }
    }
    for header in &update.dropped_headers {
        lines.push(format!(
            "Left out: the header {} of {}: it would present agentd as another product.",
            header.name,
            counted(header.models, "model")
        ));
    }
    for api in &update.not_spoken {
        lines.push(format!(
            "Not offered: {} of the API {}, which this version of agentd does not speak.",
            counted(api.models, "model"),
            api.api
        ));
    }
    if update.other_models > 0 {
        lines.push(format!("Left out: {} entries of otherModels.", update.other_models));
    }
    lines.push("It counts for all sessions that are opened from now on.".to_owned());
    lines.iter().map(|line| format!("{}\n", one_line(line))).collect()
}

fn counted(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::model_list::{CatalogueInfo, CatalogueKind, DroppedHeader, NotSpoken};

    use super::*;

    #[test]
    fn says_what_has_changed() {
        let mut update = CatalogueUpdate {
            catalogue: CatalogueInfo {
                kind: CatalogueKind::Updated,
                source: Some("my\nlist".into()),
                date: Some("2027-01-01".into()),
                updated_at: Some("2027-01-02T03:04:05Z".into()),
            },
            providers: 1,
            models: 2,
            added_providers: vec!["a".into(), "b".into()],
            removed_providers: Vec::new(),
            added_models: 1,
            removed_models: 0,
            changed_models: 3,
            dropped_headers: vec![DroppedHeader { name: "User-Agent".into(), models: 1 }],
            not_spoken: vec![NotSpoken { api: "morse".into(), models: 2 }],
            other_models: 4,
        };
        let lines = report(&update);
        let lines: Vec<&str> = lines.lines().collect();
        assert!(
            lines[0].starts_with("Catalogue: updated at 2027-01-02T03:04:05Z, of 2027-01-01 (my"),
            "{lines:?}"
        );
        assert_eq!(
            lines[1..],
            [
                "2 models of 1 provider.",
                "Models: 1 added, 3 changed.",
                "Providers added: a, b.",
                "Left out: the header User-Agent of 1 model: it would present agentd as another product.",
                "Not offered: 2 models of the API morse, which this version of agentd does not speak.",
                "Left out: 4 entries of otherModels.",
                "It counts for all sessions that are opened from now on.",
            ]
        );
        (update.added_models, update.changed_models) = (0, 0);
        assert!(report(&update).contains("\nNothing has changed about its models.\n"));
    }
}
