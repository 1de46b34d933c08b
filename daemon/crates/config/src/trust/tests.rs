use std::fs;

use super::*;
use crate::json_file::read_json;

struct TestFolder {
    root: tempfile::TempDir,
}

impl TestFolder {
    fn new() -> Self {
        let place = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(place.path("home/agent")).unwrap();
        fs::create_dir_all(place.path("home/code/project/.pi")).unwrap();
        place
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn decide(&self, approve: Option<bool>, default: ProjectTrust) -> TrustDecision {
        let agent_dir = AgentDir::at(self.path("home/agent"));
        let cwd = self.path("home/code/project");
        let environment: Environment = [("HOME", self.path("home"))].into_iter().collect();
        decide_trust(TrustQuestion {
            cwd: &cwd,
            folders: &ProjectFolders::of(&cwd, &agent_dir),
            agent_dir: &agent_dir,
            environment: &environment,
            approve,
            given: None,
            default,
            foreign: true,
        })
    }

    fn files(&self) -> StartingFiles {
        let (cwd, agent_dir) = (self.path("home/code/project"), AgentDir::at(self.path("home/agent")));
        StartingFiles::of(&cwd, &ProjectFolders::of(&cwd, &agent_dir), &agent_dir, &Environment::default())
    }

    fn check(&self, default: ProjectTrust, trusted: bool, basis: TrustBasis) {
        let decided = self.decide(None, default);
        assert_eq!((decided.trusted, decided.basis, decided.warning), (trusted, basis, None));
    }
}

#[test]
fn a_project_without_configuration_needs_no_trust() {
    let place = TestFolder::new();
    place.write("home/.agents/skills/mine/SKILL.md", "");
    place.check(ProjectTrust::Never, true, TrustBasis::NothingToTrust);
    for entry in CONFIGURING {
        let place = TestFolder::new();
        place.write(&format!("home/code/project/.pi/{entry}"), "{}");
        place.check(ProjectTrust::Ask, false, TrustBasis::Unasked);
    }
    place.write("home/code/.agents/skills/theirs/SKILL.md", "");
    place.check(ProjectTrust::Ask, false, TrustBasis::Unasked);
    fs::create_dir(place.path("home/code/project/.git")).unwrap();
    place.check(ProjectTrust::Ask, true, TrustBasis::NothingToTrust);
    place.write("home/code/project/.agentd/SYSTEM.md", "");
    place.check(ProjectTrust::Ask, false, TrustBasis::Unasked);
}

#[test]
fn flag_then_file_then_setting() {
    let place = TestFolder::new();
    place.write("home/code/project/.pi/settings.json", "{}");
    place.check(ProjectTrust::Always, true, TrustBasis::Setting);
    place.check(ProjectTrust::Never, false, TrustBasis::Setting);
    let (code, project) = (place.path("home/code"), place.path("home/code/project"));
    let save = |text: String| place.write("home/agent/trust.json", &text);
    save(format!("{{\"{}\": true}}", code.display()));
    place.check(ProjectTrust::Never, true, TrustBasis::Saved(code.clone()));
    save(format!("{{\"{}\": true, \"{}\": false}}", code.display(), project.display()));
    place.check(ProjectTrust::Always, false, TrustBasis::Saved(project));
    let flag = place.decide(Some(true), ProjectTrust::Never);
    assert_eq!((flag.trusted, flag.basis), (true, TrustBasis::Flag));
    assert!(!place.decide(Some(false), ProjectTrust::Always).trusted);
}

#[test]
fn a_saved_decision_decides() {
    let place = TestFolder::new();
    place.write("home/code/project/.pi/settings.json", "{}");
    place.write("home/agent/trust.json", "{\"/elsewhere\": false}");
    let (agent_dir, project) = (AgentDir::at(place.path("home/agent")), place.path("home/code/project"));
    for trusted in [true, false] {
        save_trust(&agent_dir, &project, trusted.then(|| place.files()).as_ref()).unwrap();
        place.check(ProjectTrust::Ask, trusted, TrustBasis::Saved(project.clone()));
    }
    let saved = read_json(&agent_dir.trust_file()).unwrap().unwrap().value;
    assert_eq!(saved.as_object().unwrap().len(), 2);
    place.write("home/agent/trust.json", "{");
    assert!(save_trust(&agent_dir, &project, None).unwrap_err().to_string().contains("trust.json"));
}

#[test]
fn what_needs_trust_is_named() {
    let place = TestFolder::new();
    place.write("home/code/project/.pi/settings.json", r#"{"shellPath":"x","theme":"y","sessionDir":"z"}"#);
    place.write("home/code/.agents/skills/theirs/SKILL.md", "");
    let (cwd, agent_dir) = (place.path("home/code/project"), AgentDir::at(place.path("home/agent")));
    let folders = ProjectFolders::of(&cwd, &agent_dir);
    let subject = |path: PathBuf, settings: &[&str]| TrustSubject {
        path,
        settings: settings.iter().map(|it| (*it).to_owned()).collect(),
        note: None,
    };
    let expected = [
        subject(cwd.join(".pi/settings.json"), &["shellPath", "sessionDir"]),
        subject(place.path("home/code/.agents/skills"), &[]),
    ];
    assert_eq!(trust_subjects(&cwd, &folders, &agent_dir, &Environment::default(), true), expected);
}

#[test]
fn a_broken_file_trusts_nothing() {
    let place = TestFolder::new();
    place.write("home/code/project/.pi/settings.json", "{}");
    for broken in ["{", "[]"] {
        place.write("home/agent/trust.json", broken);
        let trust = place.decide(None, ProjectTrust::Always);
        assert!(!trust.trusted);
        assert!(trust.warning.unwrap().to_string().contains("trust.json"));
    }
}
#[test]
fn trust_is_for_the_files_as_they_were() {
    let place = TestFolder::new();
    let agent_dir = AgentDir::at(place.path("home/agent"));
    let project = place.path("home/code/project");
    place.write("home/code/project/.pi/settings.json", r#"{"shellPath":"./sh"}"#);
    place.write("home/code/project/sh", "one");
    let saved = TrustBasis::Saved(project.clone());
    let trust = || save_trust(&agent_dir, &project, Some(&place.files())).unwrap();
    trust();
    for (name, text) in [
        (".pi/settings.json", r#"{"shellPath":"./sh", "shellCommandPrefix":"x"}"#),
        // Beside it, and read before it.
        (".agentd/settings.json", r#"{"shellPath":"./sh"}"#),
        (".pi/mcp.json", "{}"),
        // The program that is started.
        ("sh", "two"),
    ] {
        place.check(ProjectTrust::Always, true, saved.clone());
        let before = fs::read_to_string(project.join(name)).ok();
        place.write(&format!("home/code/project/{name}"), text);
        place.check(ProjectTrust::Always, false, TrustBasis::Changed(vec![project.join(name)]));
        // A flag is for the files as they are.
        assert!(place.decide(Some(true), ProjectTrust::Ask).trusted);
        match before {
            Some(before) => place.write(&format!("home/code/project/{name}"), &before),
            None => trust(),
        }
    }
    fs::remove_file(project.join(".pi/mcp.json")).unwrap();
    place.check(ProjectTrust::Ask, false, TrustBasis::Changed(vec![project.join(".pi/mcp.json")]));
    // Entries that start nothing are not asked about.
    trust();
    place.write("home/code/project/.pi/SYSTEM.md", "Be good.");
    place.check(ProjectTrust::Ask, true, saved);
}

#[test]
fn trust_without_files_is_for_those_that_are_seen_first() {
    let place = TestFolder::new();
    let (agent_dir, project) = (AgentDir::at(place.path("home/agent")), place.path("home/code/project"));
    place.write("home/code/project/.pi/settings.json", "{}");
    let code = place.path("home/code");
    place.write("home/agent/trust.json", &format!("{{\"{}\": true}}", code.display()));
    let first = place.decide(None, ProjectTrust::Ask);
    let seen: Vec<&Path> = first.first_sight.iter().map(|(folder, _)| folder.as_path()).collect();
    assert_eq!((first.trusted, seen), (true, vec![code.as_path(), project.as_path()]));
    let noted = first.first_sight.iter().map(|(folder, files)| (folder.as_path(), Some(files)));
    note_trusted_files(&agent_dir, noted).unwrap();
    assert_eq!(place.decide(None, ProjectTrust::Ask).first_sight, []);
    place.check(ProjectTrust::Ask, true, TrustBasis::Saved(code));
    place.write("home/code/project/.pi/settings.json", "{ }");
    assert!(!place.decide(None, ProjectTrust::Ask).trusted);
    // An unreadable file trusts nothing.
    for broken in ["{", "[]", &format!("{{\"{}\": 5}}", project.display())] {
        place.write("home/agent/trusted-files.json", broken);
        let trust = place.decide(None, ProjectTrust::Always);
        assert!(!trust.trusted && trust.warning.unwrap().to_string().contains("trusted-files.json"));
    }
}

#[test]
fn trust_that_was_given_for_a_time_is_for_the_files_as_they_were_too() {
    let place = TestFolder::new();
    place.write("home/code/project/.pi/settings.json", "{}");
    let given = place.files();
    let decide = || {
        let (cwd, agent_dir) = (place.path("home/code/project"), AgentDir::at(place.path("home/agent")));
        decide_trust(TrustQuestion {
            cwd: &cwd,
            folders: &ProjectFolders::of(&cwd, &agent_dir),
            agent_dir: &agent_dir,
            environment: &Environment::default(),
            approve: Some(true),
            given: Some(&given),
            default: ProjectTrust::Ask,
            foreign: true,
        })
    };
    assert!(decide().trusted);
    place.write("home/code/project/.pi/settings.json", "{ }");
    assert!(!decide().trusted);
}

#[test]
fn a_yes_does_not_reach_into_a_repository_below() {
    let place = TestFolder::new();
    place.write("home/code/project/.pi/settings.json", "{}");
    let (code, project) = (place.path("home/code"), place.path("home/code/project"));
    place.write("home/agent/trust.json", &format!("{{\"{}\": true}}", code.display()));
    place.check(ProjectTrust::Ask, true, TrustBasis::Saved(code.clone()));
    for (name, is_file) in [(".git/HEAD", false), (".git", true)] {
        place.write(&format!("home/code/project/{name}"), "gitdir: ../.git/worktrees/w");
        place.check(ProjectTrust::Ask, false, TrustBasis::Unasked);
        // A no does.
        place.write("home/agent/trust.json", &format!("{{\"{}\": false}}", code.display()));
        place.check(ProjectTrust::Ask, false, TrustBasis::Saved(code.clone()));
        place.write("home/agent/trust.json", &format!("{{\"{}\": true}}", code.display()));
        let git = project.join(".git");
        if is_file { fs::remove_file(git).unwrap() } else { fs::remove_dir_all(git).unwrap() }
    }
    // The repository itself is trusted, with all that is in it.
    fs::create_dir(place.path("home/code/.git")).unwrap();
    place.check(ProjectTrust::Ask, true, TrustBasis::Saved(code));
}

#[test]
fn another_folder_in_the_place_is_not_trusted() {
    let place = TestFolder::new();
    let agent_dir = AgentDir::at(place.path("home/agent"));
    let (code, project) = (place.path("home/code"), place.path("home/code/project"));
    place.write("home/code/project/.pi/settings.json", "{}");
    save_trust(&agent_dir, &project, Some(&place.files())).unwrap();
    place.check(ProjectTrust::Ask, true, TrustBasis::Saved(project.clone()));
    fs::rename(&project, place.path("home/code/away")).unwrap();
    place.write("home/code/project/.pi/settings.json", "{}");
    place.check(ProjectTrust::Always, false, TrustBasis::Replaced(project.clone()));
    fs::remove_dir_all(&project).unwrap();
    fs::rename(place.path("home/code/away"), &project).unwrap();
    place.check(ProjectTrust::Ask, true, TrustBasis::Saved(project.clone()));

    // The same for a folder above, which was trusted by hand.
    save_trust(&agent_dir, &project, None).unwrap();
    place.write("home/agent/trust.json", &format!("{{\"{}\": true}}", code.display()));
    let seen = place.decide(None, ProjectTrust::Ask).first_sight;
    note_trusted_files(&agent_dir, seen.iter().map(|(folder, files)| (folder.as_path(), Some(files))))
        .unwrap();
    fs::rename(&code, place.path("home/before")).unwrap();
    place.write("home/code/project/.pi/settings.json", "{}");
    place.check(ProjectTrust::Ask, false, TrustBasis::Replaced(code));
}

#[test]
fn files_that_an_older_version_noted_are_those_of_the_folder_that_is_seen_first() {
    let place = TestFolder::new();
    let agent_dir = AgentDir::at(place.path("home/agent"));
    let project = place.path("home/code/project");
    place.write("home/code/project/.pi/settings.json", "{}");
    save_trust(&agent_dir, &project, Some(&place.files())).unwrap();
    let file = agent_dir.trusted_files_file();
    let mut noted = read_json(&file).unwrap().unwrap().value;
    let members = noted[project.to_str().unwrap()].as_object_mut().unwrap();
    assert!(members.remove(".").is_some() && members.len() == 1);
    fs::write(&file, noted.to_string()).unwrap();
    let seen = place.decide(None, ProjectTrust::Ask);
    assert!(seen.trusted);
    assert_eq!(seen.first_sight, [(project, seen.files)]);
}

#[test]
fn servers_of_other_tools_need_trust_and_are_trusted_as_they_are() {
    let place = TestFolder::new();
    place.write("home/code/project/.gemini/settings.json", "{\"theme\": \"x\"}");
    place.check(ProjectTrust::Ask, true, TrustBasis::NothingToTrust);
    place.write("home/code/project/.mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}");
    place.check(ProjectTrust::Ask, false, TrustBasis::Unasked);
    let (project, agent_dir) = (place.path("home/code/project"), AgentDir::at(place.path("home/agent")));
    save_trust(&agent_dir, &project, Some(&place.files())).unwrap();
    place.check(ProjectTrust::Ask, true, TrustBasis::Saved(project.clone()));
    for (file, text) in [
        (".mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"y\"}}}"),
        (".cursor/mcp.json", "{\"mcpServers\": {}}"),
    ] {
        let path = place.path(&format!("home/code/project/{file}"));
        let before = fs::read_to_string(&path).ok();
        place.write(&format!("home/code/project/{file}"), text);
        place.check(ProjectTrust::Ask, false, TrustBasis::Changed(vec![path.clone()]));
        match before {
            Some(before) => fs::write(path, before).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        place.check(ProjectTrust::Ask, true, TrustBasis::Saved(project.clone()));
    }
}
