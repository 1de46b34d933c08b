//! Registries of packages.

use serde_json::Value;

use super::plan::{Form, Place, Plan, Sites, fact, text};

/// Versions that are listed.
const MAX_VERSIONS: usize = 15;

pub(super) fn crates_io(sites: &Sites, place: &Place<'_>) -> Option<Plan> {
    let ("crates.io", ["crates", name, ..]) = (place.host, place.path.as_slice()) else { return None };
    let url = sites.at("crates.io", &format!("/api/v1/crates/{name}"))?;
    Some(Plan { method: "crates.io", form: Form::Json(vec![url], crate_page) })
}

pub(super) fn pypi(sites: &Sites, place: &Place<'_>) -> Option<Plan> {
    let ("pypi.org", ["project", name, rest @ ..]) = (place.host, place.path.as_slice()) else { return None };
    let version = rest.first().map(|version| format!("/{version}")).unwrap_or_default();
    let url = sites.at("pypi.org", &format!("/pypi/{name}{version}/json"))?;
    Some(Plan { method: "pypi", form: Form::Json(vec![url], pypi_page) })
}

pub(super) fn rubygems(sites: &Sites, place: &Place<'_>) -> Option<Plan> {
    let ("rubygems.org", ["gems", name, ..]) = (place.host, place.path.as_slice()) else { return None };
    let url = sites.at("rubygems.org", &format!("/api/v1/gems/{name}.json"))?;
    Some(Plan { method: "rubygems", form: Form::Json(vec![url], gem_page) })
}

fn crate_page(answers: &[Value]) -> Option<String> {
    let answer = answers.first()?;
    let mut out = format!(
        "# {}\n\n{}\n\n",
        answer.pointer("/crate/name")?.as_str()?,
        text(answer, "/crate/description")
    );
    fact(&mut out, "Newest version", text(answer, "/crate/max_stable_version"));
    fact(&mut out, "Updated", text(answer, "/crate/updated_at"));
    fact(&mut out, "Repository", text(answer, "/crate/repository"));
    fact(&mut out, "Documentation", text(answer, "/crate/documentation"));
    fact(&mut out, "Homepage", text(answer, "/crate/homepage"));
    let versions = answer.get("versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if let Some(newest) = versions.first() {
        fact(&mut out, "Licence", text(newest, "/license"));
        fact(&mut out, "Rust version", text(newest, "/rust_version"));
        if let Some(features) = newest.get("features").and_then(Value::as_object) {
            let names: Vec<&str> = features.keys().map(String::as_str).take(100).collect();
            fact(&mut out, "Features", &names.join(", "));
        }
    }
    out.push_str("\n## Versions\n\n");
    for version in versions.iter().take(MAX_VERSIONS) {
        let yanked = if version.get("yanked") == Some(&Value::Bool(true)) { " (yanked)" } else { "" };
        out.push_str(&format!("- {} ({}){yanked}\n", text(version, "/num"), text(version, "/created_at")));
    }
    Some(out)
}

fn pypi_page(answers: &[Value]) -> Option<String> {
    let info = answers.first()?.get("info")?;
    let mut out = format!("# {}\n\n{}\n\n", info.get("name")?.as_str()?, text(info, "/summary"));
    fact(&mut out, "Version", text(info, "/version"));
    let licence = Some(text(info, "/license_expression"))
        .filter(|it| !it.is_empty())
        .unwrap_or_else(|| text(info, "/license"));
    fact(&mut out, "Licence", &licence[..licence.floor_char_boundary(200)]);
    fact(&mut out, "Python", text(info, "/requires_python"));
    let needed =
        info.get("requires_dist").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    fact(&mut out, "Requires", &needed.take(100).collect::<Vec<_>>().join("; "));
    for (name, url) in info.get("project_urls").and_then(Value::as_object).into_iter().flatten().take(20) {
        fact(&mut out, name, url.as_str().unwrap_or_default());
    }
    let description = text(info, "/description");
    if !description.is_empty() {
        out.push_str(&format!("\n## Description\n\n{description}\n"));
    }
    Some(out)
}

fn gem_page(answers: &[Value]) -> Option<String> {
    let gem = answers.first()?;
    let mut out = format!("# {}\n\n{}\n\n", gem.get("name")?.as_str()?, text(gem, "/info"));
    fact(&mut out, "Version", text(gem, "/version"));
    let licences =
        gem.get("licenses").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    fact(&mut out, "Licences", &licences.collect::<Vec<_>>().join(", "));
    fact(&mut out, "Source", text(gem, "/source_code_uri"));
    fact(&mut out, "Documentation", text(gem, "/documentation_uri"));
    fact(&mut out, "Homepage", text(gem, "/homepage_uri"));
    let needed = gem.pointer("/dependencies/runtime").and_then(Value::as_array).into_iter().flatten();
    let needed = needed.map(|it| format!("{} {}", text(it, "/name"), text(it, "/requirements")));
    fact(&mut out, "Requires", &needed.collect::<Vec<_>>().join("; "));
    Some(out)
}
