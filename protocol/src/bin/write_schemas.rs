//! Regenerates the files of the folder `schemas/` and `docs/protocol-reference.md`: `cargo run -p agentd-protocol --features schema --bin write_schemas`.

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join("schemas");
    fs::create_dir_all(&folder)?;
    for (name, text) in agentd_protocol::schema::files() {
        fs::write(folder.join(name), text)?;
    }
    fs::write(root.join("docs/protocol-reference.md"), agentd_protocol::schema::reference())
}
