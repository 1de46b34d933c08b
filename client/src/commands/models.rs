//! `agentctl models`: lists models with prices, abilities and keys.

mod table;
mod update;

use agentd_protocol::model_list::{ListModelsParams, ModelList};

use super::daemon_call;
use crate::{
    cli::ModelsOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::{Screen, one_line},
    rpc::ListModels,
};

pub(crate) fn run(options: &ModelsOptions) -> Exit {
    conclude(match update::params(options) {
        Ok(Some(params)) => update::run(&params, options.json),
        Ok(None) => list(options),
        Err(fault) => Err(fault),
    })
}

fn list(options: &ModelsOptions) -> Result<Exit, Fault> {
    let pattern = options.pattern.clone();
    let params = ListModelsParams { pattern, all: options.all.then_some(true) };
    let list = daemon_call::private_quietly::<ListModels>(&params)?;
    for warning in &list.warnings {
        print_stderr(&format!("Warning: {warning}"));
    }
    let printed = if options.json {
        output::print_json(&list)?
    } else {
        let printed = output::print(&table::table(&list, Screen::of_stdout().width))?;
        print_stderr(&footer(&list, &params));
        printed
    };
    Ok(match printed {
        Exit::Answered if list.models.is_empty() => Exit::Failed,
        printed => printed,
    })
}

/// The lines below the table, for stderr: what is missing, and how to get it.
fn footer(list: &ModelList, asked: &ListModelsParams) -> String {
    let mut lines = Vec::new();
    let shown = list.models.len() as u64;
    let keyless = list.models.iter().filter(|model| !model.has_key).count() as u64;
    match (&asked.pattern, shown) {
        (Some(pattern), 0) if list.not_spoken.is_empty() => {
            let near = meant(&list.similar);
            lines.push(format!(
                "No model matches \"{pattern}\".{near} `agentctl models --all` lists all that there are."
            ));
        }
        (Some(pattern), 0) => lines.push(format!("No model that agentd can speak to matches \"{pattern}\".")),
        (None, 0) => lines.push("No model can be used yet: no key is configured.".to_owned()),
        (_, shown) if keyless == 0 => lines.push(format!("{} can be used.", models(shown))),
        (_, shown) => lines.push(format!("{} of {} can be used.", shown - keyless, models(shown))),
    }
    if list.without_key > 0 {
        let more = if shown == 0 { "" } else { "more " };
        let have = if list.without_key == 1 { "has" } else { "have" };
        lines.push(format!(
            "{} {more}{have} no key: `agentctl models --all` lists them.",
            models_short(list.without_key, shown == 0)
        ));
    }
    if list.without_key > 0 || keyless > 0 {
        lines.push(advice(list));
    }
    if !list.not_spoken.is_empty() {
        let count: u64 = list.not_spoken.iter().map(|group| group.models).sum();
        let apis: Vec<&str> = list.not_spoken.iter().map(|group| group.api.as_str()).collect();
        lines.push(format!(
            "Not listed: {} of an API that this version of agentd does not speak ({}).",
            models(count),
            apis.join(", ")
        ));
    }
    if let Some(catalogue) = &list.catalogue {
        lines.push(format!("Catalogue: {}.", one_line(&catalogue.to_string())));
    }
    lines.join("\n")
}

/// The question about similar names, with a space before it.
fn meant(similar: &[String]) -> String {
    let names: Vec<String> = similar.iter().map(|name| one_line(name)).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!(" Did you mean {one}?"),
        [others @ .., last] => format!(" Did you mean {} or {last}?", others.join(", ")),
    }
}

/// The advice on keys: for the only provider without one, or in general.
fn advice(list: &ModelList) -> String {
    let mut missing = list.providers.iter().filter(|provider| !provider.has_key);
    if let (Some(provider), None) = (missing.next(), missing.next())
        && list.without_key == 0
    {
        let variable =
            provider.variable.as_deref().map(|name| format!(", or set {name}")).unwrap_or_default();
        return format!("To store a key: `agentctl login {}`{variable}.", provider.id);
    }
    "To store a key: `agentctl login PROVIDER`, or set the provider's variable, such as ANTHROPIC_API_KEY or \
     OPENAI_API_KEY."
        .to_owned()
}

fn models(count: u64) -> String {
    if count == 1 { "1 model".to_owned() } else { format!("{count} models") }
}

fn models_short(count: u64, named: bool) -> String {
    if named { models(count) } else { count.to_string() }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{
        model::Model,
        model_list::{ListedModel, ListedProvider, NotSpoken},
    };

    use super::*;

    fn list(with_key: usize, keyless: usize, without_key: u64) -> ModelList {
        let model = |has_key| ListedModel { model: Model::placeholder(), has_key };
        let provider = |id: &str, has_key| ListedProvider {
            id: id.into(),
            name: id.into(),
            has_key,
            variable: Some("P_KEY".into()),
        };
        ModelList {
            models: (0..with_key).map(|_| model(true)).chain((0..keyless).map(|_| model(false))).collect(),
            providers: vec![provider("has", true), provider("p", false)],
            without_key,
            not_spoken: Vec::new(),
            similar: Vec::new(),
            catalogue: None,
            warnings: Vec::new(),
        }
    }

    fn pattern(text: &str) -> ListModelsParams {
        ListModelsParams { pattern: Some(text.into()), all: None }
    }

    const GENERAL: &str = "To store a key: `agentctl login PROVIDER`, or set the provider's variable, such as \
                           ANTHROPIC_API_KEY or OPENAI_API_KEY.";

    #[test]
    fn says_what_is_missing() {
        let all = ListModelsParams::default();
        assert_eq!(footer(&list(3, 0, 0), &all), "3 models can be used.");
        assert_eq!(
            footer(&list(1, 0, 40), &all),
            format!(
                "1 model can be used.\n40 more have no key: `agentctl models --all` lists them.\n{GENERAL}"
            )
        );
        assert_eq!(
            footer(&list(0, 0, 40), &all),
            format!(
                "No model can be used yet: no key is configured.\n40 models have no key: `agentctl models --all` \
                 lists them.\n{GENERAL}"
            )
        );
        assert_eq!(
            footer(&list(2, 1, 0), &pattern("x")),
            "2 of 3 models can be used.\nTo store a key: `agentctl login p`, or set P_KEY."
        );
    }

    #[test]
    fn says_why_nothing_is_there() {
        let mut nothing = list(0, 0, 0);
        assert_eq!(
            footer(&nothing, &pattern("x")),
            "No model matches \"x\". `agentctl models --all` lists all that there are."
        );
        nothing.similar = vec!["a/x1".into(), "b/x2".into()];
        assert_eq!(
            footer(&nothing, &pattern("x")),
            "No model matches \"x\". Did you mean a/x1 or b/x2? `agentctl models --all` lists all that there are."
        );
        nothing.not_spoken = vec![NotSpoken { api: "morse".into(), models: 2 }];
        assert_eq!(
            footer(&nothing, &pattern("x")),
            "No model that agentd can speak to matches \"x\".\nNot listed: 2 models of an API that this version of \
             agentd does not speak (morse)."
        );
    }
}
