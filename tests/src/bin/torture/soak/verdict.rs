//! Whether it stays flat: what is used in the last quarter of the work, beside the second one.

use serde_json::{Value, json};

use super::sample::Sample;

/// A figure that must not grow.
struct Law {
    name: &'static str,
    of: fn(&Sample) -> f64,
    /// By so much of itself it may differ.
    share: f64,
    /// So much is nothing, however little there is of it.
    slack: f64,
}

/// Memory is in MiB.
const LAWS: &[Law] = &[
    Law { name: "resident memory", of: |it| it.resident, share: 0.10, slack: 8.0 },
    Law { name: "anonymous memory", of: |it| it.anonymous, share: 0.10, slack: 8.0 },
    Law { name: "open files", of: |it| it.descriptors, share: 0.15, slack: 40.0 },
    Law { name: "threads", of: |it| it.threads, share: 0.15, slack: 8.0 },
    Law { name: "tasks", of: |it| it.tasks, share: 0.15, slack: 100.0 },
    Law { name: "child processes", of: |it| it.children, share: 0.15, slack: 10.0 },
    Law { name: "known sessions", of: |it| it.live + it.resting, share: 0.02, slack: 20.0 },
];

/// How long it takes until as many sessions are in memory at once as there will be, in seconds, and the memory that a shorter run
/// may grow by, in MiB.
const WARM: (u64, f64) = (300, 48.0);

/// The medians of both quarters for each figure, and what has grown, in a run of so many seconds.
pub(crate) fn flat(samples: &[Sample], seconds: u64) -> (Value, Vec<String>) {
    let quarter = samples.len() / 4;
    let mut figures = json!({});
    let mut grown = Vec::new();
    if quarter == 0 {
        return (figures, vec!["there are too few samples to tell".into()]);
    }
    let (second, last) = (&samples[quarter..2 * quarter], &samples[samples.len() - quarter..]);
    for Law { name, of, share, slack } in LAWS {
        let (before, after) = (median(second, *of), median(last, *of));
        let is_cold = seconds < WARM.0 && name.ends_with("memory");
        let slack = if is_cold { WARM.1 } else { *slack };
        let may = before + (before * share).max(slack);
        let peak = samples.iter().map(of).fold(0.0, f64::max);
        let round = |value: f64| (value * 100.0).round() / 100.0;
        figures[*name] =
            json!({"secondQuarter": round(before), "lastQuarter": round(after), "peak": round(peak)});
        if after > may {
            grown.push(format!("{name} grew: {before:.1} in the second quarter, {after:.1} in the last"));
        }
    }
    (figures, grown)
}

/// What is left when everybody has gone, beside what there was before anybody came.
pub(crate) fn back(before: &Sample, after: &Sample) -> Vec<String> {
    let laws: [(&str, f64, f64); 5] = [
        ("open files", before.descriptors, after.descriptors),
        ("tasks", before.tasks, after.tasks),
        ("child processes", before.children, after.children),
        ("sessions in memory", 0.0, after.live),
        ("clients", before.clients, after.clients),
    ];
    let left = laws.iter().filter(|(_, before, after)| after > before);
    left.map(|(name, before, after)| format!("{name}: {after} are left, {before} were there before"))
        .collect()
}

fn median(samples: &[Sample], of: fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(resident: impl Fn(u32) -> f64) -> Vec<String> {
        let samples: Vec<Sample> =
            (0..100).map(|at| Sample { resident: resident(at), ..Sample::default() }).collect();
        flat(&samples, 600).1
    }

    #[test]
    fn growth_after_the_beginning_is_seen_and_noise_is_not() {
        assert_eq!(run(|_| 100.0), Vec::<String>::new());
        // It warms up, has a peak, and goes up and down.
        assert_eq!(run(|at| if at < 20 { f64::from(at) } else { 100.0 }), Vec::<String>::new());
        assert_eq!(run(|at| if at == 80 { 900.0 } else { 100.0 + f64::from(at % 7) }), Vec::<String>::new());
        assert_eq!(run(|at| 100.0 + f64::from(at)).len(), 1);
    }

    #[test]
    fn what_is_left_is_told() {
        let before = Sample { descriptors: 20.0, ..Sample::default() };
        assert!(back(&before, &Sample { descriptors: 19.0, ..before }).is_empty());
        assert_eq!(back(&before, &Sample { descriptors: 21.0, live: 1.0, ..before }).len(), 2);
    }
}
