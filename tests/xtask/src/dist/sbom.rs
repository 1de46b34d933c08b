//! The bill of materials in the form of CycloneDX 1.6.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    archive,
    dependencies::{Crate, CrateId},
    programs::PACKAGES,
};

/// A document that names every crate of the programs, with its licence, its hash and what it uses. Crates that only help to build them
/// have the scope `excluded`.
pub(crate) fn document(version: &str, epoch: u64, crates: &BTreeMap<CrateId, Crate>) -> Value {
    let roots: Vec<String> =
        crates.keys().filter(|(name, _)| PACKAGES.contains(&name.as_str())).map(reference).collect();
    let product = format!("pkg:generic/agentd@{version}");
    let mut dependencies = vec![json!({"ref": product, "dependsOn": roots})];
    dependencies.extend(crates.iter().map(|(id, one)| {
        let uses: Vec<String> = one.uses.iter().map(reference).collect();
        json!({"ref": reference(id), "dependsOn": uses})
    }));
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(epoch),
            "tools": {"components": [{"type": "application", "name": "agentd-xtask", "version": version}]},
            "component": {
                "type": "application",
                "bom-ref": product,
                "name": "agentd",
                "version": version,
                "purl": product,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            },
        },
        "components": crates.iter().map(component).collect::<Vec<_>>(),
        "dependencies": dependencies,
    })
}

fn component((id, one): (&CrateId, &Crate)) -> Value {
    let is_program = PACKAGES.contains(&id.0.as_str());
    let mut component = json!({
        "type": if is_program { "application" } else { "library" },
        "bom-ref": reference(id),
        "name": id.0,
        "version": id.1,
        "scope": if one.is_linked { "required" } else { "excluded" },
        "licenses": [{"expression": one.licence}],
    });
    if let Some(description) = &one.description {
        let words: Vec<&str> = description.split_whitespace().collect();
        component["description"] = json!(words.join(" "));
    }
    // Crates of this repository are in no registry: a package URL would name somebody else's.
    if let Some(checksum) = &one.checksum {
        component["purl"] = json!(reference(id));
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if let Some(repository) = &one.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

fn reference((name, version): &CrateId) -> String {
    // `+` of build metadata is a space to some readers of URLs.
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

fn timestamp(epoch: u64) -> String {
    let (year, month, day) = archive::date(epoch);
    let seconds = epoch % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc() {
        assert_eq!(timestamp(951_868_799), "2000-02-29T23:59:59Z");
    }

    #[test]
    fn every_reference_is_a_component() {
        let one = |checksum: Option<&str>, is_linked, uses: &[CrateId]| Crate {
            description: Some("Does\nthings.".to_owned()),
            licence: "MIT".to_owned(),
            repository: None,
            checksum: checksum.map(str::to_owned),
            is_linked,
            folder: "/project".into(),
            uses: uses.iter().cloned().collect(),
        };
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let crates = [
            (id("agentd", "0.1.0"), one(None, true, &[id("zstd", "2.0.0+1.5")])),
            (id("zstd", "2.0.0+1.5"), one(Some("ab"), false, &[])),
        ];
        let document = document("0.1.0", 0, &crates.into());
        let components = document["components"].as_array().unwrap();
        assert_eq!(components[0].get("purl"), None);
        assert_eq!(components[1]["purl"], "pkg:cargo/zstd@2.0.0%2B1.5");
        assert_eq!(
            (&components[0]["scope"], &components[1]["scope"]),
            (&json!("required"), &json!("excluded"))
        );
        assert_eq!(components[1]["description"], "Does things.");
        let known: Vec<&Value> = components.iter().map(|component| &component["bom-ref"]).collect();
        for dependency in document["dependencies"].as_array().unwrap() {
            for used in dependency["dependsOn"].as_array().unwrap() {
                assert!(known.contains(&used), "{used}");
            }
        }
    }
}
