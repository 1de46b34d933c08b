use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    },
};

use super::*;

const ANY: OpenRules<'_> = OpenRules::new(LinkPolicy::Followed);
const NO_LINK: OpenRules<'_> = OpenRules::new(LinkPolicy::Refused);

fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

fn problem<T>(opened: Result<T, OpenError>) -> OpenProblem {
    match opened {
        Ok(_) => panic!("was opened"),
        Err(error) => error.into_problem(),
    }
}

#[test]
fn only_regular_files_are_opened_and_nobody_is_waited_for() {
    let (_guard, root) = folder();
    let pipe = root.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let socket = root.join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    for (path, kind) in [
        (&pipe, FileKind::Pipe),
        (&socket, FileKind::Socket),
        (&root, FileKind::Folder),
        (&"/dev/zero".into(), FileKind::Device),
    ] {
        for rules in [ANY, NO_LINK] {
            let opened = [
                rules.open(path),
                rules.open_to_change(path),
                rules.open_to_extend(path),
                rules.open_to_append(path),
                rules.open_or_create(path),
            ];
            for opened in opened {
                match problem(opened) {
                    OpenProblem::NotAFile(found) => assert_eq!(found, kind),
                    other => panic!("{path:?}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn links_are_followed_where_the_rules_say_so() {
    let (_guard, root) = folder();
    let project = root.join("project");
    fs::create_dir_all(project.join("docs")).unwrap();
    fs::write(root.join("secret"), "s").unwrap();
    fs::write(project.join("docs/real"), "r").unwrap();
    for (name, target) in [
        ("inside", "docs/real".into()),
        ("absolute", project.join("docs/real")),
        ("up-and-back", "docs/../docs/real".into()),
        ("outside", "../secret".into()),
        ("absolute-outside", root.join("secret")),
        ("process", "/proc/self/environ".into()),
        ("away", "..".into()),
    ] {
        symlink(target, project.join(name)).unwrap();
    }
    let below = OpenRules::new(LinkPolicy::Beneath(&project));
    for name in ["docs/real", "inside", "absolute", "up-and-back"] {
        assert_eq!(below.read(&project.join(name)).unwrap().unwrap(), b"r", "{name}");
    }
    for name in ["outside", "absolute-outside", "process", "away/secret", "away/project/../secret"] {
        assert!(matches!(problem(below.read(&project.join(name))), OpenProblem::LeadsOut), "{name}");
        assert!(
            matches!(problem(below.open_or_create(&project.join(name))), OpenProblem::LeadsOut),
            "{name}"
        );
    }
    // The fallback without `openat2`.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let compared = |name: &str| links::by_comparing(&project.join(name), &project, flags, Mode::empty());
    assert!(
        ["docs/real", "inside", "absolute", "up-and-back"].into_iter().all(|name| compared(name).is_ok())
    );
    for name in ["outside", "absolute-outside", "process", "away/secret"] {
        assert!(matches!(compared(name), Err(OpenProblem::LeadsOut)), "{name}");
    }
    assert!(matches!(problem(below.open(&root.join("secret"))), OpenProblem::LeadsOut));
    assert!(matches!(problem(NO_LINK.open(&project.join("inside"))), OpenProblem::Link));
    assert_eq!(ANY.read(&project.join("outside")).unwrap().unwrap(), b"s");
    assert!(matches!(problem(ANY.open(&project.join("process"))), OpenProblem::OfProcesses));
}

#[test]
fn what_is_missing_is_told_apart() {
    let (_guard, root) = folder();
    fs::write(root.join("file"), "").unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    for rules in [ANY, OpenRules::new(LinkPolicy::Beneath(&root))] {
        for name in ["nothing", "file/below", "dangling"] {
            assert!(rules.read(&root.join(name)).unwrap().is_none(), "{name}");
        }
    }
    assert!(matches!(problem(NO_LINK.open(&root.join("dangling"))), OpenProblem::Link));
    assert!(NO_LINK.open(&root.join("nothing")).unwrap_err().is_missing());
}

#[test]
fn long_files_are_refused_without_being_read() {
    let (_guard, root) = folder();
    let path = root.join("sparse");
    File::create(&path).unwrap().set_len(5 << 40).unwrap();
    match problem(ANY.max_bytes(1 << 20).read(&path)) {
        OpenProblem::TooLong { length, limit } => assert_eq!((length, limit), (5 << 40, 1 << 20)),
        other => panic!("{other:?}"),
    }
    fs::write(&path, "12345").unwrap();
    assert_eq!(ANY.max_bytes(5).read(&path).unwrap().unwrap(), b"12345");
    let text = ANY.max_bytes(4).read(&path).unwrap_err().to_string();
    assert!(
        text.ends_with("sparse is 5 bytes long, more than the 4 that are read: make it shorter"),
        "{text}"
    );
    // A file that grows after it was opened.
    let rules = ANY.max_bytes(5);
    let file = rules.open(&path).unwrap();
    fs::write(&path, "123456").unwrap();
    assert!(matches!(problem(rules.read_open(&file, &path)), OpenProblem::TooLong { length: 6, limit: 5 }));
}

#[test]
fn files_of_another_user_need_to_be_asked_for() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (_guard, root) = folder();
    let path = root.join("file");
    fs::write(&path, "x").unwrap();
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    match problem(ANY.read(&path)) {
        OpenProblem::Foreign { uid } => assert_eq!(uid, 65534),
        other => panic!("{other:?}"),
    }
    assert!(ANY.owner(AcceptedOwner::Anybody).read(&path).is_ok());
    assert!(ANY.owner(AcceptedOwner::OwnOr(owner_of(&path).unwrap())).read(&path).is_ok());
    assert!(ANY.owner(AcceptedOwner::OwnOr(65533)).read(&path).is_err());
}

#[test]
fn what_is_made_is_private_and_what_is_there_is_not_cut() {
    let (_guard, root) = folder();
    let path = root.join("lock");
    for rules in [NO_LINK, OpenRules::new(LinkPolicy::Beneath(&root)), ANY] {
        drop(rules.open_or_create(&path).unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        fs::write(&path, "1").unwrap();
        drop(rules.open_or_create(&path).unwrap());
        let mut end = rules.open_to_append(&path).unwrap();
        std::io::Write::write_all(&mut end, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"12");
        let mut both = rules.open_to_extend(&path).unwrap();
        std::io::Write::write_all(&mut both, b"3").unwrap();
        std::io::Seek::rewind(&mut both).unwrap();
        assert_eq!(std::io::read_to_string(both).unwrap(), "123");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn files_of_the_kernel_are_known() {
    if let Ok(file) = File::open("/proc/self/environ") {
        assert!(is_of_processes(&file).unwrap() && is_of_kernel(&file).unwrap());
    }
    let file = tempfile::tempfile().unwrap();
    assert!(!is_of_processes(&file).unwrap() && !is_of_kernel(&file).unwrap());
}
