use std::{
    fs::{self, File, FileTimes},
    time::SystemTime,
};

use agentd_protocol::capabilities::CapabilityKind;

use super::*;
use crate::testing::TestFolder;

/// Makes everything old enough that a scan of it is kept.
fn settled(snapshot: &Snapshot) -> Snapshot {
    Snapshot {
        items: snapshot.items.clone(),
        warnings: Vec::new(),
        stamps: snapshot.stamps.clone(),
        absent: snapshot.absent.clone(),
        began: (snapshot.began.0 + 10, 0),
    }
}

fn project() -> TestFolder {
    let folder = TestFolder::new(&[
        ("p/.claude/commands/a.md", "A"),
        ("p/.cursor/rules/r.mdc", "---\nalwaysApply: true\n---\nR"),
    ]);
    fs::create_dir(folder.path("p/.git")).unwrap();
    folder
}

#[test]
fn a_scan_is_kept_while_nothing_changes() {
    let folder = project();
    let place = folder.place("p");
    let snapshot = settled(&Snapshot::of(&place, &Switches::default()));
    assert!(snapshot.is_current());
    let check = |what: &str, change: &dyn Fn()| {
        let snapshot = settled(&Snapshot::of(&place, &Switches::default()));
        assert!(snapshot.is_current(), "before: {what}");
        change();
        assert!(!snapshot.is_current(), "{what}");
    };
    check("a file changes", &|| folder.write("p/.claude/commands/a.md", "AB"));
    check("a file is added", &|| folder.write("p/.claude/commands/b.md", "B"));
    check("a file goes", &|| fs::remove_file(folder.path("p/.claude/commands/b.md")).unwrap());
    check("a folder of a tool appears", &|| folder.write("p/.windsurf/rules/x.md", "X"));
    check("an ignore file appears", &|| folder.write("p/.claude/commands/.gitignore", "a.md\n"));
    check("an ignore file changes", &|| folder.write("p/.claude/commands/.gitignore", "a.md\nb.md\n"));
    check("a file is as long as before", &|| {
        folder.write("p/.cursor/rules/r.mdc", "---\nalwaysApply: true\n---\nS");
        let file = File::options().write(true).open(folder.path("p/.cursor/rules/r.mdc")).unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(3);
        file.set_times(FileTimes::new().set_modified(later)).unwrap();
    });
    check("a file that was not there appears", &|| folder.write("p/.cursorrules", "x"));
    // Nothing of the rest of the project is looked at.
    let snapshot = settled(&Snapshot::of(&place, &Switches::default()));
    folder.write("p/src/main.rs", "fn main() {}");
    assert!(snapshot.is_current());
}

#[test]
fn a_scan_right_after_a_change_is_not_kept() {
    let folder = project();
    let place = folder.place("p");
    folder.write("p/.claude/commands/a.md", "again");
    let mut snapshot = Snapshot::of(&place, &Switches::default());
    assert!(!snapshot.is_current(), "the files are new");
    snapshot.began.0 += 10;
    assert!(snapshot.is_current());
}

#[test]
fn the_cache_gives_the_same_scan_again_and_keeps_few() {
    let folder = project();
    let cache = DiscoveryCache::default();
    let switches = Switches::default();
    let place = folder.place("p");
    let first = cache.scan(&place, &switches);
    assert_eq!(first.items.len(), 2);
    let kept = Arc::new(settled(&first));
    cache.kept.lock().unwrap()[0].1 = Arc::clone(&kept);
    assert!(Arc::ptr_eq(&cache.scan(&place, &switches), &kept));
    // Items that are switched off are read all the same.
    assert!(Arc::ptr_eq(&cache.scan(&place, &switches.clone().with_item("rule:r", false)), &kept));
    folder.write("p/.claude/commands/b.md", "B");
    assert_eq!(cache.scan(&place, &switches).items.len(), 3);
    for number in 0..2 * MAX_KEPT {
        folder.write(&format!("p/{number}/x"), "");
        let _ = cache.scan(&folder.place(&format!("p/{number}")), &switches);
    }
    assert_eq!(cache.kept.lock().unwrap().len(), MAX_KEPT);
}

#[test]
fn a_project_cannot_make_others_files_be_read() {
    use std::os::unix::fs::symlink;
    let folder = project();
    folder.write("secret/rules/key.md", "---\nalwaysApply: true\n---\nhush");
    folder.write("home/.agentd/auth.json", "{\"mcpServers\": {\"hush\": {\"command\": \"x\"}}}");
    symlink(folder.path("secret/rules"), folder.path("p/.cursor/rules/out")).unwrap();
    symlink(folder.path("secret/rules/key.md"), folder.path("p/.cursor/rules/key.mdc")).unwrap();
    symlink(folder.path("home/.agentd/auth.json"), folder.path("p/.mcp.json")).unwrap();
    symlink(folder.path("p/.cursor/rules"), folder.path("p/.cursor/rules/around")).unwrap();
    fs::create_dir(folder.path("p/.windsurfrules")).unwrap();
    let snapshot = Snapshot::of(&folder.place("p"), &Switches::default());
    let names: Vec<&str> = snapshot.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "r").count(), 1, "{names:?}");
    assert!(!names.contains(&"key") && !names.contains(&"hush"), "{names:?}");
    let said: Vec<String> = snapshot.warnings.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|text| text.contains("rules/out: [Cursor] this folder leads out of the project")),
        "{said:?}"
    );
    assert!(said.iter().any(|text| text.contains("/.mcp.json") && text.contains("not used")), "{said:?}");
    assert!(said.iter().all(|text| !text.contains("hush")), "{said:?}");
}

#[test]
fn broken_files_are_named_and_quote_nothing() {
    let folder = project();
    folder.write("p/.mcp.json", "{\"mcpServers\": {\"a\": hush}}");
    folder.write("p/.codex/config.toml", "a = 1\n[mcp_servers.x]\ncommand = hush\n");
    folder.write("p/.gemini/settings.json", "[\"hush\"]");
    folder.write("p/.cursor/mcp.json", "{\"mcpServers\": [\"hush\"]}");
    folder.write("p/.claude/settings.json", "{\"hooks\": [\"hush\"]}");
    folder.write("p/.claude/rules/big.md", &"x".repeat(2 << 20));
    let snapshot = Snapshot::of(&folder.place("p"), &Switches::default());
    let said: Vec<String> = snapshot.warnings.iter().map(ToString::to_string).collect();
    for says in [
        ".mcp.json: [mcp.json] the file is not JSON at line 1",
        "config.toml: [Codex] the file is not TOML at line 3",
        "settings.json: [Gemini CLI] the file holds no JSON object",
        "mcp.json: [Cursor] the servers are no object",
        "settings.json: [Claude Code] \"hooks\" is no object",
        "big.md: [Claude Code] the file is 2097152 bytes long",
    ] {
        assert!(said.iter().any(|text| text.contains(says)), "{says}: {said:?}");
    }
    assert!(said.iter().all(|text| !text.contains("hush")), "{said:?}");
    assert!(snapshot.items.iter().all(|item| item.kind != CapabilityKind::Mcps));
}
