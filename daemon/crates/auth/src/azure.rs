//! The address and deployment of a model on Azure, which are the user's own.

use agentd_config::Environment;
use agentd_http::Account;
use agentd_protocol::model::Model;

/// The API that only Azure speaks.
const API: &str = "azure-openai-responses";

/// The provider of the catalogue, and the name that it used to have.
const PROVIDERS: [&str; 2] = ["azure", API];

/// The path of the API on Azure's own hosts.
const PATH: &str = "/openai/v1";

/// Azure's own domains. Everything else is a gateway, whose address is taken as it stands.
const DOMAINS: [&str; 3] = [".openai.azure.com", ".cognitiveservices.azure.com", ".ai.azure.com"];

/// Paths under which the address of a resource is handed around, and that all mean [`PATH`].
const OTHER_PATHS: [&str; 3] = ["", "/openai", "/openai/v1/responses"];

/// The address and account of a model on Azure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AzureTarget {
    /// The address of the API.
    pub(crate) base_url: String,
    /// The version to ask for, and the deployment where it is not called as the model.
    pub(crate) account: Account,
}

/// Returns whether a model is on Azure.
pub(crate) fn has(model: &Model) -> bool {
    model.api == API || PROVIDERS.contains(&model.provider.as_str())
}

/// The address and account of `model`, whose configured address is `configured`. For the catalogue's provider the environment
/// takes precedence, as in Azure's own programs; a provider of `models.json` keeps its own address.
///
/// # Errors
/// The missing or wrong setting, for the user.
pub(crate) fn place(
    model: &Model,
    configured: &str,
    environment: &Environment,
) -> Result<AzureTarget, String> {
    let variable = |name: &str| environment.non_empty(name).map(str::trim).filter(|value| !value.is_empty());
    let from_variables = || match (variable("AZURE_OPENAI_BASE_URL"), variable("AZURE_OPENAI_RESOURCE_NAME"))
    {
        (Some(url), _) => Some(normalized(url).map_err(|what| format!("AZURE_OPENAI_BASE_URL {what}"))),
        (None, Some(name)) => Some(of_resource(name)),
        (None, None) => None,
    };
    let from_model = || {
        let url = configured.trim();
        (!url.is_empty())
            .then(|| normalized(url).map_err(|what| format!("its \"baseUrl\" in models.json {what}")))
    };
    let found = if PROVIDERS.contains(&model.provider.as_str()) {
        from_variables().or_else(from_model)
    } else {
        from_model().or_else(from_variables)
    };
    let base_url = found.unwrap_or_else(|| {
        Err("set AZURE_OPENAI_BASE_URL (such as https://NAME.openai.azure.com) or AZURE_OPENAI_RESOURCE_NAME in the \
             environment or with the stored key, or \"baseUrl\" of the provider in models.json"
            .to_owned())
    })?;
    let deployment = variable("AZURE_OPENAI_DEPLOYMENT_NAME_MAP")
        .and_then(|map| deployment(map, &model.id))
        .map(str::to_owned);
    let api_version = variable("AZURE_OPENAI_API_VERSION").map(str::to_owned);
    Ok(AzureTarget { base_url, account: Account { api_version, deployment, ..Account::default() } })
}

/// The address of a resource, by its name.
fn of_resource(name: &str) -> Result<String, String> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if name.chars().all(is_legal) {
        return Ok(format!("https://{name}{}{PATH}", DOMAINS[0]));
    }
    Err(format!(
        "AZURE_OPENAI_RESOURCE_NAME is {name:?}, and names of resources have letters, digits and dashes only (a whole \
         address belongs into AZURE_OPENAI_BASE_URL)"
    ))
}

/// The address with the path of the API, where it is one of Azure's own without a path of its own.
fn normalized(url: &str) -> Result<String, String> {
    let (address, query) = url.split_once(['?', '#']).unwrap_or((url, ""));
    let address = address.trim_end_matches('/');
    let parts = address.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
    let Some((scheme, rest)) = parts.filter(|(_, rest)| !rest.is_empty() && !rest.starts_with('/')) else {
        return Err("is no http or https address, such as https://NAME.openai.azure.com".to_owned());
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = host.split(':').next().unwrap_or(host).to_ascii_lowercase();
    if DOMAINS.iter().any(|domain| host.ends_with(domain)) && OTHER_PATHS.contains(&path) {
        return Ok(format!("{scheme}://{authority}{PATH}"));
    }
    let joint = if query.is_empty() { "" } else { "?" };
    Ok(format!("{address}{joint}{query}"))
}

/// The deployment of `model` in a map of the form `model=deployment,model=deployment`.
fn deployment<'a>(map: &'a str, model: &str) -> Option<&'a str> {
    let pairs = map.split(',').filter_map(|pair| pair.split_once('='));
    let mut pairs = pairs.map(|(id, name)| (id.trim(), name.trim()));
    pairs.find(|(id, name)| *id == model && !name.is_empty()).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(provider: &str, base_url: &str, variables: &[(&str, &str)]) -> Result<AzureTarget, String> {
        let model = Model { id: "gpt".into(), provider: provider.into(), ..Model::placeholder() };
        place(&model, base_url, &variables.iter().copied().collect())
    }

    fn address(provider: &str, base_url: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        at(provider, base_url, variables).map(|place| place.base_url)
    }

    #[test]
    fn addresses_of_azure_get_the_path_of_the_api() {
        for (url, expected) in [
            ("https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1"),
            (" https://r.openai.azure.com/ ", "https://r.openai.azure.com/openai/v1"),
            ("https://R.OpenAI.azure.com/openai/", "https://R.OpenAI.azure.com/openai/v1"),
            ("https://r.openai.azure.com/openai/v1", "https://r.openai.azure.com/openai/v1"),
            (
                "https://r.openai.azure.com/openai/v1/responses?api-version=preview",
                "https://r.openai.azure.com/openai/v1",
            ),
            ("https://r.services.ai.azure.com:443", "https://r.services.ai.azure.com:443/openai/v1"),
            ("https://r.cognitiveservices.azure.com/", "https://r.cognitiveservices.azure.com/openai/v1"),
            // A part that the user put there on purpose stays.
            (
                "https://r.openai.azure.com/openai/deployments/d",
                "https://r.openai.azure.com/openai/deployments/d",
            ),
            ("https://gateway.example.com", "https://gateway.example.com"),
            ("https://gateway.example.com/azure/?team=1", "https://gateway.example.com/azure?team=1"),
            ("https://openai.azure.com.example.com/x/", "https://openai.azure.com.example.com/x"),
            ("http://127.0.0.1:9/openai", "http://127.0.0.1:9/openai"),
        ] {
            let found = address("azure", "", &[("AZURE_OPENAI_BASE_URL", url)]);
            assert_eq!(found.as_deref(), Ok(expected), "{url}");
        }
    }

    #[test]
    fn sources_have_an_order() {
        let url = ("AZURE_OPENAI_BASE_URL", "https://gateway");
        let name = ("AZURE_OPENAI_RESOURCE_NAME", "my-resource");
        let of_name = "https://my-resource.openai.azure.com/openai/v1";
        for (provider, base_url, variables, expected) in [
            ("azure", "https://own", &[url, name][..], "https://gateway"),
            ("azure", "https://own", &[name], of_name),
            ("azure", "https://own", &[], "https://own"),
            ("azure-openai-responses", "", &[name], of_name),
            ("mine", "https://own", &[url, name], "https://own"),
            ("mine", "", &[name], of_name),
        ] {
            let found = address(provider, base_url, variables);
            assert_eq!(found.as_deref(), Ok(expected), "{provider} {base_url} {variables:?}");
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (base_url, variables, expected) in [
            ("", &[][..], "set AZURE_OPENAI_BASE_URL (such as"),
            (
                "",
                &[("AZURE_OPENAI_BASE_URL", "r.openai.azure.com")],
                "AZURE_OPENAI_BASE_URL is no http or https",
            ),
            ("", &[("AZURE_OPENAI_BASE_URL", "https://")], "AZURE_OPENAI_BASE_URL is no http or https"),
            ("", &[("AZURE_OPENAI_RESOURCE_NAME", "h/x?")], "AZURE_OPENAI_RESOURCE_NAME is \"h/x?\""),
            ("ftp://h", &[], "its \"baseUrl\" in models.json is no http"),
        ] {
            let problem = address("azure", base_url, variables).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn deployments_are_found_by_the_model() {
        let check = |map: &str, expected: Option<&str>| {
            let name = ("AZURE_OPENAI_RESOURCE_NAME", "r");
            let place = at("azure", "", &[name, ("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", map)]).unwrap();
            assert_eq!(place.account.deployment.as_deref(), expected, "{map}");
        };
        check("gpt=prod", Some("prod"));
        check("other=x, gpt = prod ,", Some("prod"));
        check("gpt=a=b", Some("a=b"));
        check("gpt=", None);
        check("gpt-5=x,gpt", None);
        let version = ("AZURE_OPENAI_API_VERSION", "preview");
        let place = at("mine", "https://h", &[version]).unwrap();
        assert_eq!(place.account.api_version.as_deref(), Some("preview"));
        let models =
            [("azure", "openai-completions", true), ("x", API, true), ("x", "openai-responses", false)];
        for (provider, api, expected) in models {
            let model = Model { provider: provider.into(), api: api.into(), ..Model::placeholder() };
            assert_eq!(has(&model), expected);
        }
    }
}
