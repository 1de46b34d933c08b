//! Packs the model catalogue: each provider's models compressed by themselves, and an index that says where they are and
//! what can be known without unpacking them.

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

#[path = "src/models/catalogue/id_hash.rs"]
mod id_hash;

/// The best compression that there is: it costs nothing at run time.
const LEVEL: u8 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("catalogue");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/models/catalogue/id_hash.rs");
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

    let mut code = format!("const PROVIDERS: &[Provider] = &[\n{index}];\n\nconst PREFERRED: &[usize] = &[");
    for row in &preferred {
        let place = files.iter().position(|file| id_of(file) == Some(&row.id));
        write!(code, "{}, ", place.ok_or_else(|| format!("no models of {}", row.id))?)?;
    }
    code.push_str("];\n");
    fs::write(out.join("catalogue.rs"), code)?;
    fs::write(out.join("catalogue.bin"), packed)?;
    Ok(())
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
    let text = fs::read_to_string(file)?;
    let mut apis: BTreeMap<String, usize> = BTreeMap::new();
    let mut has_default = false;
    let mut ids = Vec::new();
    for line in text.lines() {
        let model: Value = serde_json::from_str(line)?;
        let api = model["api"].as_str().ok_or("a model without \"api\"")?;
        *apis.entry(api.to_owned()).or_default() += 1;
        let model_id = model["id"].as_str().ok_or("a model without \"id\"")?;
        ids.push(id_hash::id_hash(model_id));
        has_default |= model_id == row.default;
        if model["provider"] != id {
            return Err(format!("a model of another provider: {}", model["provider"]).into());
        }
    }
    if !has_default {
        return Err(format!("no model {}", row.default).into());
    }
    let start = packed.len();
    packed.extend(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), LEVEL));
    let apis: Vec<(&String, &usize)> = apis.iter().collect();
    writeln!(
        index,
        "    Provider {{ id: {id:?}, name: {:?}, default: {:?}, apis: &{apis:?}, ids: &{ids:?}, packed: {start}..{}, unpacked: {} }},",
        row.name,
        row.default,
        packed.len(),
        text.len(),
    )?;
    Ok(())
}
