//! Packs the model catalogue: each provider's models compressed by themselves, and an index that says where they are and
//! what can be known without unpacking them. And takes from the schemas of configuration files what says which members there are, which is
//! a fifth of them, and is read at each start.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

#[path = "src/models/catalogue/packing.rs"]
mod packing;

/// The best compression that there is: it costs nothing at run time.
const LEVEL: u8 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("catalogue");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/models/catalogue/packing.rs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let out = PathBuf::from(env::var("OUT_DIR")?);

    let mut files = fs::read_dir(folder.join("models"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort_by(|a, b| id_of(a).cmp(&id_of(b)));
    let preferred = preferred(&folder.join("providers.jsonl"))?;
    let (mut index, mut packed) = (String::new(), Vec::new());
    for file in &files {
        pack(file, &preferred, &mut index, &mut packed)
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if files.len() != preferred.len() {
        return Err("providers.jsonl and the files in models/ name different providers".into());
    }

    let mut code = format!("static BUILTIN: &[Builtin] = &[\n{index}];\n\nstatic PREFERRED: &[usize] = &[");
    for row in &preferred {
        let place = files.iter().position(|file| id_of(file) == Some(&row.id));
        write!(code, "{}, ", place.ok_or_else(|| format!("no models of {}", row.id))?)?;
    }
    code.push_str("];\n");
    let about: Value = serde_json::from_str(&fs::read_to_string(folder.join("about.json"))?)?;
    for (constant, member) in [("SOURCE", "source"), ("DATE", "date")] {
        let text = about[member].as_str().ok_or_else(|| format!("about.json: no \"{member}\""))?;
        writeln!(code, "const {constant}: &str = {text:?};")?;
    }
    fs::write(out.join("catalogue.rs"), code)?;
    fs::write(out.join("catalogue.bin"), packed)?;

    for name in ["settings", "models"] {
        let schema = format!("../../../schemas/{name}.json");
        println!("cargo::rerun-if-changed={schema}");
        let text = fs::read_to_string(&schema).map_err(|error| format!("{schema}: {error}"))?;
        let members = members(&serde_json::from_str(&text).map_err(|error| format!("{schema}: {error}"))?);
        fs::write(out.join(format!("{name}_members.json")), members.to_string())?;
    }
    Ok(())
}

/// The keywords of a JSON Schema that say which members an object may have, and those of the schemas in it.
fn members(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let kept = keywords.iter().filter_map(|(keyword, value)| {
        let kept = match (keyword.as_str(), value) {
            ("$ref", _) => value.clone(),
            ("$defs" | "properties", Value::Object(named)) => {
                named.iter().map(|(name, schema)| (name.clone(), members(schema))).collect()
            }
            ("additionalProperties" | "items", _) => members(value),
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => schemas.iter().map(members).collect(),
            _ => return None,
        };
        Some((keyword.clone(), kept))
    });
    Value::Object(kept.collect())
}

/// A line of `providers.jsonl`.
struct Row {
    id: String,
    name: String,
    default: String,
}

fn preferred(path: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line)?;
            let field = |name: &str| {
                row[name].as_str().map(str::to_owned).ok_or_else(|| format!("no \"{name}\" in {line}"))
            };
            Ok(Row { id: field("id")?, name: field("name")?, default: field("default")? })
        })
        .collect()
}

fn id_of(file: &Path) -> Option<&str> {
    file.file_stem()?.to_str()
}

/// Adds a provider's models to the packed bytes, and its line to the index.
fn pack(
    file: &Path,
    preferred: &[Row],
    index: &mut String,
    packed: &mut Vec<u8>,
) -> Result<(), Box<dyn Error>> {
    let id = id_of(file).ok_or("not the name of a provider")?;
    let row = preferred.iter().find(|row| row.id == id).ok_or("not in providers.jsonl")?;
    let about = packing::pack(id, &row.default, &fs::read_to_string(file)?, LEVEL, packed)?;
    writeln!(
        index,
        "    Builtin {{ id: {id:?}, name: {:?}, default: {:?}, apis: &{:?}, ids: &{:?}, names_levels: {}, packed: {:?}, unpacked: {} }},",
        row.name, row.default, about.apis, about.ids, about.names_levels, about.packed, about.unpacked,
    )?;
    Ok(())
}
