//! The pictures of a report, as SVG. Ink is black: the page makes it the colour of its text.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Line;
use super::load_map::LoadMap;

const SIZE: (u32, u32) = (640, 280);

/// The greatest value of a picture that is worth drawing lies in this range.
pub(super) const PLOTTED: Range<f64> = 1e-6..1e12;

/// Most values of a picture: more would not be told apart.
const MOST_VALUES: usize = 64;

/// A measured value, with its 95 % interval.
pub(super) struct Bar {
    name: String,
    value: f64,
    low: f64,
    high: f64,
    ink: RGBColor,
    /// The range in which it would be the same as in earlier reports.
    same: Option<(f64, f64)>,
}

impl Bar {
    /// The bar of a line; None for a line without a value.
    pub(super) fn of(line: &Line, same: Option<(f64, f64)>) -> Option<Self> {
        let value = line.value?;
        Some(Self {
            name: line.item.to_string(),
            value,
            low: line.low.unwrap_or(value),
            high: line.high.unwrap_or(value),
            ink: if line.is_chosen() { MARKED } else { BLUE },
            same,
        })
    }

    /// The greatest value that has to find room: of `same` its middle at least, since noise may be wide.
    fn greatest(&self) -> f64 {
        let middle = self.same.map_or(0.0, |(low, high)| low.sqrt() * high.sqrt());
        self.high.max(self.value).max(middle)
    }
}

/// Ink and bars; the page knows them by these colours.
const BLUE: RGBColor = RGBColor(0x33, 0x66, 0xaa);
const FAINT: RGBAColor = RGBAColor(0x80, 0x80, 0x80, 0.25);
const MARKED: RGBColor = RGBColor(0xcc, 0x66, 0x00);

/// A bar for each value. None without values.
pub(super) fn bars(all: &[Bar]) -> Option<String> {
    draw(all, |chart, all| {
        for (place, bar) in all.iter().enumerate() {
            let (left, right) = (place as f64 - 0.3, place as f64 + 0.3);
            chart.draw_series([Rectangle::new([(left, 0.0), (right, bar.value)], bar.ink.filled())])?;
        }
        Ok(())
    })
}

/// A line through the values, which are equally far from one another. None with fewer than two.
pub(super) fn curve(all: &[Bar]) -> Option<String> {
    if all.len() < 2 {
        return None;
    }
    draw(all, |chart, all| {
        let points = all.iter().enumerate().map(|(place, bar)| (place as f64, bar.value));
        chart.draw_series(LineSeries::new(points.clone(), BLUE.stroke_width(2)))?;
        let marks = all.iter().zip(points).map(|(bar, point)| Circle::new(point, 5, bar.ink.filled()));
        chart.draw_series(marks)?;
        Ok(())
    })
}

/// How dark the squares of the least and of the greatest value are, and those of loads that were not carried:
/// a figure can be read on each.
const SHADES: [f64; 2] = [0.05, 0.45];
const NOT_CARRIED: f64 = 0.6;

/// Room for the names of rows, and of columns.
const ROOM: (i32, i32) = (110, 40);

/// A square for each load, which is the darker the longer reads take.
pub(super) fn map(map: &LoadMap<'_>) -> Option<String> {
    let mut svg = String::new();
    let drawn = draw_map(map, &SVGBackend::with_string(&mut svg, SIZE).into_drawing_area());
    drawn.ok().map(|()| svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_map(map: &LoadMap<'_>, area: &Area<'_>) -> Result<(), Box<dyn Error>> {
    let width = (SIZE.0 as i32 - ROOM.0) / map.writes.len().max(1) as i32;
    let height = (SIZE.1 as i32 - ROOM.1) / map.reads.len().max(1) as i32;
    let lefts = (0..).map(|column| ROOM.0 + column * width);
    let columns: Vec<(&u32, i32)> = map.writes.iter().zip(lefts).collect();
    for (row, reads) in map.reads.iter().enumerate() {
        let (top, bottom) = (row as i32 * height, (row as i32 + 1) * height);
        write(area, format!("reads {reads} %"), (ROOM.0 / 2, top + height / 2))?;
        for &(writes, left) in &columns {
            let Some(line) = map.at(reads, *writes) else { continue };
            let square = [(left + 1, top + 1), (left + width - 1, bottom - 1)];
            if let Some(value) = LoadMap::value(line) {
                area.draw(&Rectangle::new(square, shade(line, value, map.range()).filled()))?;
            }
            area.draw(&Rectangle::new(square, BLACK.stroke_width(1)))?;
            write(area, line.shown_of_load(), (left + width / 2, top + height / 2))?;
        }
    }
    for (writes, left) in columns {
        write(area, format!("writes {writes} %"), (left + width / 2, SIZE.1 as i32 - ROOM.1 / 2))?;
    }
    area.present()?;
    Ok(())
}

/// The shade of a value among those of loads that were carried, by its logarithm.
fn shade(line: &Line, value: f64, (least, most): (f64, f64)) -> RGBAColor {
    let share = if least < most { (value / least).ln() / (most / least).ln() } else { 0.0 };
    let shade = SHADES[0] + share * (SHADES[1] - SHADES[0]);
    RGBAColor(0x80, 0x80, 0x80, if line.is_carried() { shade } else { NOT_CARRIED })
}

/// Writes with this middle.
fn write(area: &Area<'_>, text: String, at: (i32, i32)) -> Result<(), Box<dyn Error>> {
    let style = ("sans-serif", 15).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Center));
    Ok(area.draw(&Text::new(text, at, style))?)
}

type Drawn<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

/// Axes, what `inside` draws, and the intervals above it.
fn draw(
    all: &[Bar],
    inside: impl Fn(&mut Drawn<'_, '_>, &[Bar]) -> Result<(), Box<dyn Error>>,
) -> Option<String> {
    let greatest = all.iter().map(Bar::greatest).fold(0.0, f64::max);
    // A stored line may say anything.
    if !PLOTTED.contains(&greatest) || all.len() > MOST_VALUES {
        return None;
    }
    let top = greatest * 1.05;
    let mut svg = String::new();
    let drawn = || -> Result<(), Box<dyn Error>> {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let last = all.len() as f64 - 0.5;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(70)
            .build_cartesian_2d(-0.5..last, 0.0..top)?;
        let name = |at: &f64| {
            let is_whole = (at - at.round()).abs() < 1e-6;
            let place = is_whole.then(|| all.get(at.round() as usize)).flatten().filter(|_| *at > -0.25);
            place.map_or(String::new(), |bar| bar.name.clone())
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(2 * all.len() + 1)
            .x_label_formatter(&name)
            .y_label_formatter(&|value| super::gather::count(*value))
            .y_labels(5)
            .draw()?;
        chart.draw_series(all.iter().enumerate().filter_map(|(place, bar)| {
            let (low, high) = bar.same?;
            let (left, right) = (place as f64 - 0.4, place as f64 + 0.4);
            Some(Rectangle::new([(left, low), (right, high.min(top))], FAINT.filled()))
        }))?;
        inside(&mut chart, all)?;
        chart.draw_series(all.iter().enumerate().filter(|(_, bar)| bar.low < bar.high).map(
            |(place, bar)| {
                let at = place as f64;
                PathElement::new(vec![(at, bar.low), (at, bar.high)], BLACK.stroke_width(1))
            },
        ))?;
        area.present()?;
        Ok(())
    }();
    drawn.ok().map(|()| svg)
}
