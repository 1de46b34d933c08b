//! Suggestions for a name that fits nothing.

use std::{cmp::Reverse, sync::Arc};

use agentd_protocol::model::Model;

use super::{
    UsableModels,
    names::{is_alias, slips, split_level},
};

/// Names that are proposed at most.
const MOST: usize = 3;

impl UsableModels<'_> {
    /// The models, as `provider/id`, that hold a text almost: best first, and each id once. Only those that this build
    /// speaks to, and only the closest; those with credentials first. Looks at every provider.
    #[must_use]
    pub fn similar(&self, text: &str) -> Vec<String> {
        self.similar_among(text, &|_| true, &full_id)
    }

    /// [`Self::similar`] for the models of one provider.
    #[must_use]
    pub fn similar_in(&self, provider: &str, text: &str) -> Vec<String> {
        self.similar_among(text, &|other| other == provider, &|model| model.id.clone())
    }

    /// Of these providers, by this name of each model.
    fn similar_among(
        &self,
        text: &str,
        of: &dyn Fn(&str) -> bool,
        name: &dyn Fn(&Model) -> String,
    ) -> Vec<String> {
        let wanted = |provider: &str| of(provider) && self.registry.may_speak(provider, self.apis);
        let text = split_level(text).map_or(text, |(before, _)| before).to_lowercase();
        let preferred: Vec<_> = self.registry.defaults().collect();
        let place = |provider: &str| preferred.iter().position(|(id, _)| *id == provider);
        let models = self.registry.select(&wanted).filter(|model| self.offers(model));
        let mut found: Vec<_> = models
            .filter_map(|model| {
                let slips = slips(&text, &name(model).to_lowercase())?;
                let has_auth = (self.has_auth)(&model.provider);
                let extra = model.id.chars().count().abs_diff(text.chars().count());
                // The user's own providers come before those of the catalogue.
                let place = place(&model.provider);
                let is_default = place.is_some_and(|place| preferred[place].1 == model.id);
                let is_alias = is_alias(&model.id);
                let rank = (slips, Reverse(has_auth), Reverse(is_default), Reverse(is_alias), extra, place);
                Some((rank, model))
            })
            .collect();
        found.sort_by_key(|(rank, _)| *rank);
        let closest = found.first().map(|((slips, ..), _)| *slips);
        let mut chosen: Vec<&Arc<Model>> = Vec::new();
        for (_, model) in found.iter().take_while(|((slips, ..), _)| Some(*slips) == closest) {
            if chosen.len() < MOST && chosen.iter().all(|other| other.id != model.id) {
                chosen.push(model);
            }
        }
        chosen.into_iter().map(|model| full_id(model)).collect()
    }

    /// The providers whose whole id is almost this. Looks at none of their models.
    #[must_use]
    pub fn similar_providers(&self, name: &str) -> Vec<String> {
        let name = name.to_lowercase();
        let distance = |id: &str| {
            let slips = slips(&name, id)?;
            let whole = id.chars().count().abs_diff(name.chars().count()) <= slips.max(1);
            whole.then_some(slips)
        };
        let mut found: Vec<(usize, &str)> =
            self.registry.providers().filter_map(|id| Some((distance(&id.to_lowercase())?, id))).collect();
        found.sort_by_key(|(slips, _)| *slips);
        found.into_iter().take(MOST).map(|(_, id)| id.to_owned()).collect()
    }
}

fn full_id(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::models::{
        ModelRegistry,
        names::{LONGEST, did_you_mean, slips},
        testing::TestModels,
    };

    #[test]
    fn what_is_too_long_for_a_name_is_not_compared() {
        assert_eq!(slips(&"x".repeat(LONGEST), &"x".repeat(LONGEST)), Some(0));
        assert_eq!(slips(&"x".repeat(LONGEST + 1), &"x".repeat(LONGEST + 1)), None);
    }

    #[test]
    fn slips_are_counted() {
        for (text, within, expected) in [
            ("sonnet", "anthropic/claude-sonnet-5", Some(0)),
            ("sonet", "anthropic/claude-sonnet-5", Some(1)),
            ("sonnett", "claude-sonnet-5", Some(1)),
            ("sonmet", "claude-sonnet-5", Some(1)),
            ("e-opsu", "claude-opus-5", Some(1)),
            ("opsu", "claude-opus-5", None),
            ("snoet", "claude-sonnet-5", None),
            ("cluade-opsu", "claude-opus-5", Some(2)),
            ("", "x", None),
            ("word", "", None),
            ("größe", "große", Some(1)),
        ] {
            assert_eq!(slips(text, within), expected, "{text} in {within}");
        }
    }

    #[test]
    fn the_closest_models_are_proposed_once_each() {
        let models = [
            "a/claude-sonnet-20250101",
            "a/claude-sonnet",
            "b/claude-sonnet",
            "b/claude-sonnet-mini",
            "b/other",
            "silent/claude-sonet",
        ];
        let similar = |auth, text: &str| {
            let usable_models = TestModels::new(&models, auth).silent("silent");
            usable_models.offer().similar(text)
        };
        let all = ["a/claude-sonnet", "b/claude-sonnet-mini", "a/claude-sonnet-20250101"];
        assert_eq!(similar(&[], "claude-sonet"), all);
        assert_eq!(similar(&[], "Claude-Sonet:high"), all);
        assert_eq!(similar(&["b"], "claude-sonet")[..1], ["b/claude-sonnet"]);
        assert_eq!(similar(&[], "a/claud-sonnet")[..1], ["a/claude-sonnet"]);
        for text in ["", "zz", "something", "gpt-6.1-sol"] {
            assert_eq!(similar(&[], text), [""; 0], "{text}");
        }
        let usable_models = TestModels::new(&models, &[]);
        assert_eq!(
            usable_models.offer().similar_in("b", "claude-sonet"),
            ["b/claude-sonnet", "b/claude-sonnet-mini"]
        );
        assert_eq!(usable_models.offer().similar_in("zzz", "claude-sonet"), [""; 0]);
    }

    #[test]
    fn providers_by_their_whole_name() {
        let registry = ModelRegistry::builtin();
        let usable_models =
            UsableModels { registry: &registry, apis: &[], has_auth: &|_| false, plan: &|_| None };
        for (name, expected) in [
            ("antropic", &["anthropic"][..]),
            ("OpenAPI", &["openai"]),
            ("openrouters", &["openrouter"]),
            ("ope", &[]),
            ("router", &[]),
            ("nobody", &[]),
        ] {
            assert_eq!(usable_models.similar_providers(name), expected, "{name}");
        }
        assert_eq!(registry.unpacked_providers().count(), 0);
    }

    #[test]
    fn the_question() {
        let question =
            |names: &[&str]| did_you_mean(&names.iter().map(|name| (*name).into()).collect::<Vec<_>>());
        assert_eq!(question(&[]), "");
        assert_eq!(question(&["a"]), " Did you mean \"a\"?");
        assert_eq!(question(&["a", "b", "c"]), " Did you mean \"a\", \"b\" or \"c\"?");
    }

    proptest! {
        #[test]
        fn a_part_has_no_slips_and_one_changed_letter_has_at_most_one(
            (text, at) in "[a-z]{8,20}".prop_flat_map(|text| { let length = text.len(); (Just(text), 0..length) }),
            (front, back) in ("[a-z/]{0,10}", "[a-z/]{0,10}"),
        ) {
            let within = format!("{front}{text}{back}");
            prop_assert_eq!(slips(&text, &within), Some(0));
            let mut changed = text.into_bytes();
            changed[at] = b'!';
            let changed = String::from_utf8(changed).unwrap();
            prop_assert_eq!(slips(&changed, &within), Some(1));
        }
    }
}
