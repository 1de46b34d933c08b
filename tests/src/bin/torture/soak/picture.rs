//! The curves of a run as one SVG page that can be read on light and on dark ground.

use std::fmt::Write;

use super::sample::Sample;

const WIDTH: f64 = 920.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const PANEL: f64 = 120.0;
const GAP: f64 = 34.0;
const TOP: f64 = 52.0;
/// More points than that say nothing more at this width.
const POINTS: usize = 600;

/// A curve: its name, its class in the style sheet, and its value.
type Curve = (&'static str, &'static str, fn(&Sample) -> f64);

/// Panels: a title with the unit, and the curves.
const PANELS: &[(&str, &[Curve])] = &[
    (
        "memory of the daemon, MiB",
        &[("resident", "a", |it| it.resident), ("anonymous", "b", |it| it.anonymous)],
    ),
    ("open files, tasks", &[("open files", "a", |it| it.descriptors), ("tasks", "b", |it| it.tasks)]),
    (
        "threads, child processes",
        &[("threads", "a", |it| it.threads), ("child processes", "b", |it| it.children)],
    ),
    ("sessions", &[("in memory", "a", |it| it.live), ("at rest on disk", "b", |it| it.resting)]),
    ("clients", &[("clients", "a", |it| it.clients)]),
];

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#24292f}.t{font-weight:600}.n{fill:#57606a}\
.g{stroke:#d0d7de;stroke-width:1}.a,.b,.c{fill:none;stroke-width:1.5}.a{stroke:#0969da}.b{stroke:#bc4c00}.c{stroke:#1a7f37}\
.la{fill:#0969da}.lb{fill:#bc4c00}.lc{fill:#1a7f37}.p{fill:#ffffff}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.n{fill:#9198a1}.g{stroke:#3d444d}.a{stroke:#4493f8}.b{stroke:#f0883e}\
.c{stroke:#3fb950}.la{fill:#4493f8}.lb{fill:#f0883e}.lc{fill:#3fb950}.p{fill:#0d1117}}";

/// The picture of a run.
pub(crate) fn svg(title: &str, samples: &[Sample]) -> String {
    let rates = rates(samples);
    let count = PANELS.len() + 1;
    #[expect(clippy::cast_precision_loss, reason = "a handful of panels")]
    let height = TOP + count as f64 * (PANEL + GAP) + 20.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\"><title>{title}</title><style>{STYLE}</style><rect class=\"p\" width=\"100%\" height=\"100%\"/>\
         <text class=\"t\" x=\"{LEFT}\" y=\"24\">{title}</text>"
    );
    let times: Vec<f64> = samples.iter().map(|it| it.at).collect();
    let mut top = TOP;
    for (title, curves) in PANELS {
        let lines: Vec<(&str, &str, Vec<f64>)> = curves
            .iter()
            .map(|(name, class, of)| (*name, *class, samples.iter().map(of).collect()))
            .collect();
        panel(&mut out, top, title, &times, &lines);
        top += PANEL + GAP;
    }
    let lines = [("commands", "a", rates.0), ("prompts", "b", rates.1), ("CPU, %", "c", rates.2)];
    panel(&mut out, top, "work in a second", &times, &lines);
    let _ = writeln!(out, "<text class=\"n\" x=\"{LEFT}\" y=\"{}\">minutes</text></svg>", top + PANEL + 32.0);
    out
}

/// Commands, prompts and per cent of a processor, of each second; smoothed over ten samples.
fn rates(samples: &[Sample]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let rate = |of: fn(&Sample) -> f64, factor: f64| -> Vec<f64> {
        (0..samples.len())
            .map(|index| {
                let (before, after) = (&samples[index.saturating_sub(10)], &samples[index]);
                let seconds = (after.at - before.at).max(0.001);
                if index == 0 { 0.0 } else { factor * (of(after) - of(before)) / seconds }
            })
            .collect()
    };
    (rate(|it| it.commands, 1.0), rate(|it| it.prompts, 1.0), rate(|it| it.cpu, 100.0))
}

fn panel(out: &mut String, top: f64, title: &str, times: &[f64], lines: &[(&str, &str, Vec<f64>)]) {
    let end = times.last().copied().unwrap_or(1.0).max(1.0);
    let most = lines.iter().flat_map(|(_, _, values)| values).copied().fold(1.0, f64::max);
    let most = ceiling(most);
    let (width, bottom) = (WIDTH - LEFT - RIGHT, top + PANEL);
    let x = |time: f64| LEFT + width * time / end;
    let y = |value: f64| bottom - PANEL * value / most;
    let _ = write!(out, "<text class=\"t\" x=\"{LEFT}\" y=\"{}\">{title}</text>", top - 7.0);
    for step in 0..=2 {
        let value = most * f64::from(step) / 2.0;
        let _ = write!(
            out,
            "<line class=\"g\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\"/>\
             <text class=\"n\" text-anchor=\"end\" x=\"{2}\" y=\"{3:.1}\">{value}</text>",
            LEFT + width,
            y(value),
            LEFT - 8.0,
            y(value) + 4.0
        );
    }
    for step in 0..=6 {
        let minutes = end / 60.0 * f64::from(step) / 6.0;
        let _ = write!(
            out,
            "<text class=\"n\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{minutes:.1}</text>",
            x(minutes * 60.0),
            bottom + 15.0
        );
    }
    let mut labels: Vec<(f64, &str, &str)> = Vec::new();
    for (name, class, values) in lines {
        let every = values.len().div_ceil(POINTS).max(1);
        let points: String = times
            .iter()
            .zip(values)
            .step_by(every)
            .map(|(time, value)| format!("{:.1},{:.1} ", x(*time), y(*value)))
            .collect();
        let _ = write!(out, "<polyline class=\"{class}\" points=\"{}\"/>", points.trim_end());
        labels.push((y(values.last().copied().unwrap_or_default()), name, class));
    }
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut last = f64::MIN;
    for (at, name, class) in labels {
        // Names stand beside the ends of their curves, and never on each other.
        last = (at + 4.0).max(last + 15.0);
        let _ = write!(
            out,
            "<text class=\"l{class}\" x=\"{}\" y=\"{last:.1}\">{name}</text>",
            LEFT + width + 8.0
        );
    }
}

/// A round number that is not less.
fn ceiling(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 5.0, 8.0, 10.0]
        .iter()
        .map(|step| step * unit)
        .find(|round| *round >= value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_every_curve_with_its_name() {
        let samples: Vec<Sample> =
            (0..2000).map(|at| Sample { at: f64::from(at), resident: 50.0, ..Sample::default() }).collect();
        let svg = svg("a run", &samples);
        let curves: usize = PANELS.iter().map(|(_, curves)| curves.len()).sum();
        assert_eq!(svg.matches("<polyline").count(), curves + 3);
        for (_, curves) in PANELS {
            assert!(curves.iter().all(|(name, ..)| svg.contains(&format!(">{name}</text>"))));
        }
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.len() < 200_000, "{}", svg.len());
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([0.7, 1.0, 3.0, 42.0, 81.0, 1001.0].map(ceiling), [0.8, 1.0, 4.0, 50.0, 100.0, 2000.0]);
    }
}
