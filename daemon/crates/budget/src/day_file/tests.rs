use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
    thread,
};

use agentd_protocol::budget::BudgetQuantity;

use super::*;
use crate::records::Share;

fn cost(cost: u64) -> Amounts {
    Amounts { cost, ..Amounts::default() }
}

fn limit(cost: u64) -> Limits {
    Limits { cost: Some(cost), ..Limits::default() }
}

/// The file of a folder, and its records as another process may change them.
fn with_share(folder: &Path, share: Share) -> DayFile {
    let file = DayFile::in_folder(folder);
    let mut records = Records::open(file.path(), today()).unwrap();
    records.shares.push(Some(share));
    records.write(file.path()).unwrap();
    file
}

fn shares(file: &DayFile) -> Vec<Share> {
    Records::look(file.path(), today()).unwrap().unwrap().shares.into_iter().flatten().collect()
}

/// A process that runs until it is killed.
fn child() -> Child {
    Command::new("cat").stdin(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_day_is_kept_in_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = DayFile::in_folder(&folder.path().join("new"));
    assert_eq!(file.look().unwrap().used, Amounts::default());
    assert!(!folder.path().join("new").exists());
    let reserved = file.reserve(limit(100), &Quote::of(cost(80))).unwrap();
    let Err(DayError::Refused { refusal, others, .. }) = file.reserve(limit(100), &Quote::of(cost(30)))
    else {
        panic!()
    };
    assert_eq!(refusal, Refusal { what: BudgetQuantity::CostUsd, is_reserved: true });
    assert_eq!(others, []);
    assert_eq!(file.settle(&reserved, cost(50)).unwrap(), cost(50));
    assert_eq!(file.spend(limit(100), cost(20)).unwrap(), cost(70));
    assert!(matches!(file.spend(limit(100), cost(31)), Err(DayError::Refused { .. })));
    let again = DayFile::in_folder(&folder.path().join("new"));
    assert_eq!(again.look().unwrap(), DayUse { used: cost(70), reserved: Amounts::default() });
    assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 1);
    assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn of_the_dead_counts_what_they_had_begun() {
    let folder = tempfile::tempdir().unwrap();
    let dead = Share { holder: Holder::dead(), reserved: cost(90), begun: cost(30) };
    let file = with_share(folder.path(), dead);
    assert_eq!(file.look().unwrap(), DayUse { used: cost(30), reserved: Amounts::default() });
    file.reserve(limit(100), &Quote::of(cost(10))).unwrap();
    file.reserve(limit(100), &Quote::of(cost(60))).unwrap();
    assert_eq!(shares(&file), [Share { holder: Holder::current(), reserved: cost(70), begun: cost(70) }]);
    assert_eq!(file.look().unwrap(), DayUse { used: cost(30), reserved: cost(70) });
}

#[test]
fn a_step_notes_what_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let file = DayFile::in_folder(folder.path());
    let sure = Amounts { turns: 1, ..cost(10) };
    let quote = Quote { sure, output: 50, least_output: 1, enough_output: 1, output_price: 1.0 };
    let mut reserved = file.reserve(limit(100), &quote).unwrap();
    assert_eq!(shares(&file)[0].begun, cost(10));
    file.note(&mut reserved, Amounts { turns: 1, ..cost(25) }).unwrap();
    let other = file.reserve(limit(100), &Quote::of(cost(5))).unwrap();
    assert_eq!(shares(&file)[0].begun, Amounts { turns: 1, ..cost(30) });
    file.settle(&reserved, cost(40)).unwrap();
    assert_eq!((shares(&file)[0].reserved, shares(&file)[0].begun), (cost(5), cost(5)));
    file.settle(&other, cost(5)).unwrap();
    assert_eq!(shares(&file), []);
}

#[test]
fn a_new_day_begins_at_nothing_and_keeps_what_is_reserved() {
    let folder = tempfile::tempdir().unwrap();
    let file = DayFile::in_folder(folder.path());
    file.spend(limit(100), cost(80)).unwrap();
    let reserved = file.reserve(limit(100), &Quote::of(cost(20))).unwrap();
    let tomorrow = Records::open(file.path(), today().tomorrow().unwrap()).unwrap();
    assert_eq!((tomorrow.sum.used, tomorrow.reserved()), (Amounts::default(), reserved.amounts));
    tomorrow.write(file.path()).unwrap();
    // For this process the day goes on.
    assert_eq!(file.settle(&reserved, cost(15)).unwrap(), cost(15));
}

#[test]
fn what_is_no_sum_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = DayFile::in_folder(folder.path());
    file.spend(limit(1), cost(1)).unwrap();
    let whole = fs::read_to_string(file.path()).unwrap();
    for text in [
        "{}".to_owned(),
        "\0".repeat(512),
        whole.replace("\"day\":\"2", "\"day\":\"soon 2"),
        whole.replace("\"version\":2", "\"version\":3"),
        format!("{whole}{{\"pid\":1}}"),
        whole[..50].to_owned() + "\n",
    ] {
        fs::write(file.path(), &text).unwrap();
        let error = file.reserve(limit(1), &Quote::default()).unwrap_err();
        assert!(
            error.to_string().contains("budget-day.jsonl") && error.to_string().contains("Move"),
            "{error}"
        );
        assert!(file.look().is_err());
    }
    fs::remove_file(file.path()).unwrap();
    std::os::unix::fs::symlink("/dev/null", file.path()).unwrap();
    assert!(matches!(file.look(), Err(DayError::Unreadable { .. })));
}

/// A process may be killed after it made the file, and the power may be lost before a line is on the disk.
#[test]
fn a_file_without_lines_is_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = DayFile::in_folder(folder.path());
    fs::write(file.path(), "").unwrap();
    assert_eq!(file.look().unwrap().used, Amounts::default());
    file.spend(limit(9), cost(1)).unwrap();
    let mut bytes = fs::read(file.path()).unwrap();
    bytes.extend([0; 512]);
    fs::write(file.path(), &bytes).unwrap();
    let reserved = file.reserve(limit(9), &Quote::of(cost(1))).unwrap();
    assert_eq!(file.settle(&reserved, cost(1)).unwrap(), cost(2));
    assert_eq!(fs::read(file.path()).unwrap().len(), bytes.len());
}

#[test]
fn others_that_have_reserved_are_named_and_their_lines_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = child();
    let holder = Holder::of_child(&child);
    let file = with_share(folder.path(), Share { holder, reserved: cost(90), begun: cost(1) });
    let Err(DayError::Refused { refusal, others, .. }) = file.reserve(limit(100), &Quote::of(cost(30)))
    else {
        panic!()
    };
    assert_eq!((refusal.is_reserved, others), (true, vec![holder]));
    child.kill().unwrap();
    child.wait().unwrap();
    let reserved = file.reserve(limit(100), &Quote::of(cost(30))).unwrap();
    assert_eq!((shares(&file).len(), fs::read(file.path()).unwrap().len()), (1, 2 * 512));
    assert_eq!(file.settle(&reserved, cost(2)).unwrap(), cost(3));
}

/// Many sums of the same file at once, each step settled with less than was reserved or given up.
#[test]
fn side_by_side_no_limit_is_exceeded() {
    let folder = tempfile::tempdir().unwrap();
    let (most, threads) = (1000, 8);
    let spend = |thread: u64| {
        let file = DayFile::in_folder(folder.path());
        let mut spent = 0;
        for step in 0..60 {
            let wanted = 5 + (thread * 7 + step * 11) % 40;
            match file.reserve(limit(most), &Quote::of(cost(wanted))) {
                Ok(reserved) => {
                    let DayUse { used, reserved: held } = file.look().unwrap();
                    assert!(used.cost + held.cost <= most);
                    let took = if step % 5 == 0 { 0 } else { wanted - step % 3 };
                    file.settle(&reserved, cost(took)).unwrap();
                    spent += took;
                }
                Err(DayError::Refused { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        spent
    };
    let spent: u64 = thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let spend = &spend;
                    move || spend(thread)
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    let day = DayFile::in_folder(folder.path()).look().unwrap();
    assert_eq!(day, DayUse { used: cost(spent), reserved: Amounts::default() });
    assert!(spent <= most && spent > most - 45, "{spent}");
}
