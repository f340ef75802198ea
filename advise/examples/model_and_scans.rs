//! Holds the page-cost model against forced scans that others have timed.
//!
//! `cargo run --release -p io_probe_advise --example model_and_scans FOLDER` reads the files `*.csv` of a
//! folder, one for each machine, in the form of <https://github.com/tvondra/scan-iomethod-tests>: nine tables
//! of 10,000,000 rows, each asked for ranges by an index scan, a bitmap scan and a sequential scan, with
//! caches emptied before. From the table in no order (`uniform`) come the times of pages, as
//! `io_probe_page_cost` would have measured them; where rows lie is sampled from tables made by the same
//! recipe. The model then predicts the scans of the other tables.
//!
//! For each machine and `io_method`: the regret (the time of the picked scan over that of the fastest, as a
//! geometric mean over ranges, tables and `effective_io_concurrency`) of the model, of the planner with its
//! defaults, and of a bitmap scan always; the worst range of the model; and by how much predictions are off
//! (1.5: by half, up or down, in the root mean square of logarithms), of index scans, bitmap scans, and the
//! ratio of the two.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use io_probe_advise::page_costs::locality::{Locality, locality};
use io_probe_advise::page_costs::model::{Caches, Index, PlannedScan, Table, Times};
use io_probe_core::measure::page_times::{Estimate, PageTimes, Sparse};
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Normal};
use rand_xoshiro::Xoshiro256PlusPlus;

const TABLE: Table = Table { pages: 555_556.0, rows: 10_000_008.0 };
const INDEX_PAGES: f64 = 27_400.0;
const ROWS_A_PAGE: u64 = 18;
/// Values reach from 0 to this.
const VALUES: f64 = 100_000.0;
/// How often `cyclic` tables go through their values: so many stretches hold the rows of a range.
const CYCLES: u64 = 100;
/// The kernel's default readahead, in pages; nothing is said of another.
const WINDOW: f64 = 16.0;
/// What a tuple takes in a sequential, an index and a bitmap scan, over a bare count, as the model has it.
const TUPLE: [f64; 3] = [1.8, 1.4, 2.8];
/// Pages that are read at random before the first row, as the model has it.
const DESCENT: f64 = 5.0;
/// Samples of an index, and rows of each, as the extension takes them.
const SAMPLES: u64 = 12;
const SAMPLED_ROWS: usize = 200;
/// Pages of a bitmap scan from which on its time says what a page takes.
const MANY_PAGES: f64 = 500.0;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A scan that was timed.
struct Scan {
    table: String,
    plan: PlannedScan,
    concurrency: u32,
    /// `io_method`, and its workers.
    method: String,
    buffers: String,
    /// Which range was asked for, by its width.
    width: u32,
    is_planners: bool,
    rows: f64,
    pages: f64,
    /// Microseconds, with caches emptied and right afterwards.
    cold: f64,
    warm: f64,
}

impl Scan {
    /// None of scans that no released server has, and of those that were ended.
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[
            _,
            width,
            table,
            plan,
            "off",
            eic,
            _,
            method,
            workers,
            buffers,
            _,
            _,
            optimal,
            _,
            rows,
            _,
            pages,
            cold,
            warm,
        ] = &fields[..]
        else {
            return None;
        };
        let plan = match plan {
            "seqscan" => PlannedScan::Sequential,
            "indexscan" => PlannedScan::Index,
            "bitmapscan" => PlannedScan::Bitmap,
            _ => return None,
        };
        let us = |ms: &str| ms.parse::<f64>().ok().filter(|ms| *ms > 0.0).map(|ms| ms * 1e3);
        Some(Self {
            table: table.to_owned(),
            plan,
            concurrency: eic.parse().ok()?,
            method: if method == "worker" { format!("worker {workers}") } else { method.to_owned() },
            buffers: buffers.to_owned(),
            width: width.parse().ok()?,
            is_planners: optimal == "yes",
            rows: rows.parse().ok()?,
            pages: pages.parse().ok()?,
            cold: us(cold)?,
            warm: us(warm)?,
        })
    }

    fn density(&self) -> f64 {
        self.pages / TABLE.pages
    }
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or("usage: model_and_scans FOLDER")?;
    let localities = localities();
    for (table, locality) in &localities {
        println!(
            "{table:<10} {:.3} anywhere, the others in a stretch of {:.0} pages",
            locality.scattered, locality.stretch
        );
    }
    println!(
        "\nmachine          method     buffers  model  planner  bitmap  worst  index  bitmap  index/bitmap"
    );
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    for path in
        files.iter().map(std::fs::DirEntry::path).filter(|path| path.extension() == Some("csv".as_ref()))
    {
        judge(&path, &localities)?;
    }
    Ok(())
}

/// Prints a line for each `io_method` and size of shared buffers of a machine.
fn judge(path: &Path, localities: &BTreeMap<&str, Locality>) -> Result<()> {
    let machine = path.file_stem().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(path)?;
    let mut by_method: BTreeMap<(String, String), Vec<Scan>> = BTreeMap::new();
    for scan in text.lines().filter_map(Scan::parse) {
        by_method.entry((scan.method.clone(), scan.buffers.clone())).or_default().push(scan);
    }
    for ((method, buffers), scans) in &by_method {
        let Some(times) = times_of(scans, method, buffers) else { continue };
        let mut verdict = Verdict::default();
        let mut tables: BTreeMap<&str, Verdict> = BTreeMap::new();
        let mut ranges: BTreeMap<(&str, u32, u32), Vec<&Scan>> = BTreeMap::new();
        for scan in scans.iter().filter(|scan| scan.table != "uniform") {
            ranges.entry((&scan.table, scan.concurrency, scan.width)).or_default().push(scan);
        }
        for ((table, ..), scans) in ranges {
            let index = Index { pages: INDEX_PAGES, locality: localities[table] };
            let predicted = |scan: &Scan| {
                times.of_scan(scan.plan, &TABLE, &index, scan.rows, scan.concurrency, Caches::Cold)
            };
            verdict.add(&scans, predicted);
            tables.entry(table).or_default().add(&scans, predicted);
        }
        println!("{machine:<16} {method:<10} {buffers:<7} {verdict}");
        for (table, verdict) in tables {
            println!("{table:>35} {verdict}");
        }
    }
    Ok(())
}

/// The times of pages by the table in no order; None if it has too few scans.
fn times_of(scans: &[Scan], method: &str, buffers: &str) -> Option<Times> {
    let of = |plan| scans.iter().filter(move |scan| scan.plan == plan && scan.table == "uniform");
    let device_sequential = median(of(PlannedScan::Sequential).map(|scan| scan.cold / TABLE.pages))?;
    // With small buffers a sequential scan does not keep what it reads.
    let warm_page = median(of(PlannedScan::Sequential).map(|scan| scan.warm / TABLE.pages))?;
    let of_few = || of(PlannedScan::Index).filter(|scan| scan.rows < 0.003 * TABLE.rows);
    let device_random = median(of_few().map(|scan| scan.cold / (scan.pages + DESCENT)))?;
    // Each row of a few is on a page of its own.
    let warm_row = median(of_few().filter(|scan| scan.rows > 1000.0).map(|scan| scan.warm / scan.rows))?;
    let tuple = warm_page / (ROWS_A_PAGE as f64 * TUPLE[0]) * 0.9;
    let hit = ((warm_row - TUPLE[1] * tuple) / 13.7).max(0.005);
    let os = warm_page * 0.1;
    let many = of(PlannedScan::Bitmap).filter(|scan| scan.pages >= MANY_PAGES);
    let mut sparse: Vec<Sparse> = many
        .map(|scan| {
            let rest = DESCENT * device_random + scan.rows * (TUPLE[2] * tuple + hit);
            let each = (scan.cold - rest) / scan.pages;
            Sparse { density: scan.density(), concurrency: scan.concurrency, time: estimate(each.max(0.1)) }
        })
        .collect();
    sparse.sort_by(|a, b| a.density.total_cmp(&b.density));
    let times = PageTimes {
        shared: Some(estimate(hit)),
        os_sequential: Some(estimate(os)),
        os_random: Some(estimate(os)),
        device_sequential: Some(estimate(device_sequential)),
        device_random: Some(estimate(device_random)),
        sparse,
        tuple: Some(estimate(tuple)),
    };
    let pages = if buffers == "4GB" { 524_288.0 } else { 4_194_304.0 };
    Some(Times::of(&times, pages, WINDOW).ok()?.by_workers(method.starts_with("worker")))
}

fn estimate(us: f64) -> Estimate {
    Estimate { us, interval: None }
}

/// How well the model picks and predicts.
#[derive(Default)]
struct Verdict {
    /// Logarithms of regrets.
    model: Vec<f64>,
    planner: Vec<f64>,
    bitmap: Vec<f64>,
    /// Logarithms of predicted over measured.
    off_index: Vec<f64>,
    off_bitmap: Vec<f64>,
    off_ratio: Vec<f64>,
}

impl Verdict {
    /// The scans of a range.
    fn add(&mut self, scans: &[&Scan], predicted: impl Fn(&Scan) -> f64) {
        let best = scans.iter().map(|scan| scan.cold).fold(f64::INFINITY, f64::min);
        let regret = |scan: &Scan| (scan.cold / best).ln();
        let picked = scans.iter().min_by(|a, b| predicted(a).total_cmp(&predicted(b)));
        self.model.extend(picked.map(|scan| regret(scan)));
        self.planner.extend(scans.iter().find(|scan| scan.is_planners).map(|scan| regret(scan)));
        let off = |plan| {
            let scan = scans.iter().find(|scan| scan.plan == plan)?;
            Some((predicted(scan) / scan.cold).ln())
        };
        let [index, bitmap] = [PlannedScan::Index, PlannedScan::Bitmap].map(off);
        self.off_index.extend(index);
        self.off_bitmap.extend(bitmap);
        self.off_ratio.extend(index.zip(bitmap).map(|(index, bitmap)| index - bitmap));
        self.bitmap
            .extend(scans.iter().find(|scan| scan.plan == PlannedScan::Bitmap).map(|scan| regret(scan)));
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let worst = self.model.iter().copied().fold(0.0, f64::max).exp();
        let [model, planner, bitmap] =
            [&self.model, &self.planner, &self.bitmap].map(|logs| mean(logs).exp());
        let [by_index, by_bitmap, by_ratio] =
            [&self.off_index, &self.off_bitmap, &self.off_ratio].map(|logs| {
                let squares: Vec<f64> = logs.iter().map(|log| log * log).collect();
                mean(&squares).sqrt().exp()
            });
        write!(f, "{model:>6.3}  {planner:>7.2}  {bitmap:>6.2}  {worst:>5.1}")?;
        write!(f, "  {by_index:>5.2}  {by_bitmap:>6.2}  {by_ratio:>12.2}")
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    io_probe_core::stats::median(&values.collect::<Vec<f64>>())
}

/// Where the rows of each table lie, by samples of its index as the extension takes them.
fn localities() -> BTreeMap<&'static str, Locality> {
    let tables = [
        ("uniform", 0, 0.0),
        ("linear", 1, 0.0),
        ("linear_1", 1, 1.0),
        ("linear_10", 1, 10.0),
        ("linear_25", 1, 25.0),
        ("cyclic", CYCLES, 0.0),
        ("cyclic_1", CYCLES, 1.0),
        ("cyclic_10", CYCLES, 10.0),
        ("cyclic_25", CYCLES, 25.0),
    ];
    let found = tables.map(|(table, cycles, noise_pct)| {
        let samples = samples_of(cycles, noise_pct);
        (table, locality(&samples, &TABLE).expect("samples of many rows"))
    });
    found.into_iter().collect()
}

/// Samples of the index on a table whose values rise in so many cycles, with noise of so many percent of
/// their range; without cycles they are in no order.
fn samples_of(cycles: u64, noise_pct: f64) -> Vec<Vec<u64>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let noise = Normal::new(0.0, noise_pct * VALUES / 100.0).expect("no negative deviation");
    let rows = TABLE.rows as u64;
    let mut entries: Vec<(f64, u64)> = (0..rows)
        .map(|row| {
            let value = match cycles {
                0 => VALUES * random.random::<f64>(),
                cycles => VALUES * (row % (rows / cycles)) as f64 / (rows / cycles) as f64,
            };
            (value + noise.sample(&mut random), row / ROWS_A_PAGE)
        })
        .collect();
    // As the index has them: equal values by their place.
    entries.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    (0..SAMPLES)
        .map(|sample| {
            let start = ((4 * sample + 2) * rows / (4 * SAMPLES)) as usize;
            entries[start..].iter().take(SAMPLED_ROWS).map(|(_, page)| *page).collect()
        })
        .collect()
}
