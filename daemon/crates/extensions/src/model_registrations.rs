//! The providers and virtual models that extensions have registered.

use serde_json::{Map, Value};

/// A provider of an extension.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RegisteredProvider {
    /// The extension that registered it last.
    pub(crate) extension: usize,
    pub(crate) id: String,
    /// Whether it is an object of the extension, and not a list of fields.
    pub(crate) is_native: bool,
    /// Data, and functions as `{"cb": number}`.
    pub(crate) fields: Map<String, Value>,
    /// What `modifyModels` made of the models for the login that is stored.
    pub(crate) modified: Option<Vec<Value>>,
}

/// A virtual model of an extension.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RegisteredVirtualModel {
    pub(crate) extension: usize,
    pub(crate) model: Map<String, Value>,
    /// Its router.
    pub(crate) route: u64,
}

/// All of them, in the order of their registrations.
#[derive(Debug, Default)]
pub(crate) struct ModelRegistrations {
    pub(crate) providers: Vec<RegisteredProvider>,
    pub(crate) virtual_models: Vec<RegisteredVirtualModel>,
}

impl RegisteredProvider {
    /// The number of a function, by the path of its fields.
    pub(crate) fn function(&self, path: &[&str]) -> Option<u64> {
        let (first, rest) = path.split_first()?;
        let field = rest.iter().try_fold(self.fields.get(*first)?, |value, name| value.get(name))?;
        field["cb"].as_u64()
    }

    /// The function that answers requests to a model of this API.
    pub(crate) fn stream(&self, api: &str) -> Option<u64> {
        let of_api = self.is_native || self.fields.get("api").is_some_and(|own| own == api);
        of_api.then(|| self.function(&["streamSimple"]))?
    }
}

impl ModelRegistrations {
    /// Takes or takes back a provider. One that is registered again keeps what it leaves open now.
    pub(crate) fn provider(
        &mut self,
        extension: usize,
        id: String,
        (is_native, fields): (bool, Map<String, Value>),
        is_taken_back: bool,
    ) {
        let known = self.providers.iter().position(|provider| provider.id == id);
        if is_taken_back {
            if let Some(at) = known {
                self.providers.remove(at);
            }
            return;
        }
        match known.map(|at| &mut self.providers[at]) {
            Some(known) if !known.is_native && !is_native => {
                known.extension = extension;
                known.fields.extend(fields);
            }
            Some(known) => *known = RegisteredProvider { extension, id, is_native, fields, modified: None },
            None => {
                self.providers.push(RegisteredProvider { extension, id, is_native, fields, modified: None });
            }
        }
    }

    pub(crate) fn add_virtual(&mut self, extension: usize, model: Map<String, Value>, route: u64) {
        let same = |known: &&mut RegisteredVirtualModel| {
            ["provider", "id"].iter().all(|name| known.model.get(*name) == model.get(*name))
        };
        match self.virtual_models.iter_mut().find(same) {
            Some(known) => *known = RegisteredVirtualModel { extension, model, route },
            None => self.virtual_models.push(RegisteredVirtualModel { extension, model, route }),
        }
    }

    pub(crate) fn remove_virtual(&mut self, provider: &str, id: &str) {
        self.virtual_models.retain(|known| !known.is(provider, id));
    }

    /// Takes over what was registered before, for the extensions that have a place now.
    pub(crate) fn take_over(&mut self, before: Self, place: impl Fn(usize) -> Option<usize>) {
        for provider in before.providers {
            if let Some(extension) = place(provider.extension) {
                self.providers.push(RegisteredProvider { extension, ..provider });
            }
        }
        for model in before.virtual_models {
            if let Some(extension) = place(model.extension) {
                self.virtual_models.push(RegisteredVirtualModel { extension, ..model });
            }
        }
    }

    /// Drops everything of an extension.
    pub(crate) fn discard(&mut self, extension: usize) {
        self.providers.retain(|known| known.extension != extension);
        self.virtual_models.retain(|known| known.extension != extension);
    }
}

impl RegisteredVirtualModel {
    pub(crate) fn is(&self, provider: &str, id: &str) -> bool {
        self.model.get("provider").is_some_and(|own| own == provider)
            && self.model.get("id").is_some_and(|own| own == id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        let Value::Object(fields) = value else { panic!() };
        fields
    }

    #[test]
    fn a_provider_that_is_registered_again_keeps_what_is_left_open() {
        let mut models = ModelRegistrations::default();
        let first =
            json!({"api": "own", "baseUrl": "a", "streamSimple": {"cb": 3}, "oauth": {"login": {"cb": 4}}});
        models.provider(0, "p".into(), (false, fields(first)), false);
        models.provider(1, "p".into(), (false, fields(json!({"baseUrl": "b"}))), false);
        let provider = &models.providers[0];
        assert_eq!((provider.extension, &provider.fields["baseUrl"]), (1, &json!("b")));
        assert_eq!((provider.stream("own"), provider.stream("other")), (Some(3), None));
        assert_eq!(provider.function(&["oauth", "login"]), Some(4));
        models.provider(1, "p".into(), (true, fields(json!({"streamSimple": {"cb": 9}}))), false);
        assert_eq!(models.providers[0].stream("any"), Some(9));
        models.provider(1, "p".into(), (false, Map::new()), true);
        assert_eq!(models.providers, []);
    }

    #[test]
    fn a_virtual_model_of_the_same_name_takes_the_place_of_the_other() {
        let mut models = ModelRegistrations::default();
        for route in [1, 2] {
            models.add_virtual(0, fields(json!({"provider": "v", "id": "auto"})), route);
        }
        assert_eq!(models.virtual_models.len(), 1);
        assert_eq!(models.virtual_models[0].route, 2);
        models.remove_virtual("v", "auto");
        assert_eq!(models.virtual_models, []);
    }
}
