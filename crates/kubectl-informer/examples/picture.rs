//! Runs a program on a terminal, ends it as Ctrl-C would, and draws what is seen then as SVG:
//!
//! ```text
//! cargo run -p kubectl-informer --example picture -- 118 34 8 target/release/kubectl-informer demo > docs/demo.svg
//! ```
//!
//! The numbers are columns, rows and seconds.

#[path = "../tests/support/terminal.rs"]
#[expect(dead_code, reason = "tests look at more of it")]
mod terminal;

use std::error::Error;
use std::io::Read as _;
use std::process::Command;
use std::time::Duration;

use terminal::{Cell, Colour, Terminal};

const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 16.0;

#[expect(clippy::print_stdout, reason = "the picture goes to standard output")]
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [width, height, seconds, program, rest @ ..] = args.as_slice() else {
        return Err("wants columns, rows, seconds, a program and its arguments".into());
    };
    let (width, height): (u16, u16) = (width.parse()?, height.parse()?);
    let time = Duration::from_secs(seconds.parse()?);
    let (mut pty, pts) = pty_process::blocking::open()?;
    pty.resize(pty_process::Size::new(height, width))?;
    let mut child = pty_process::blocking::Command::new(program)
        .args(rest)
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .spawn(pts)?;
    let id = child.id().to_string();
    let ender = std::thread::spawn(move || {
        std::thread::sleep(time);
        Command::new("kill").args(["-INT", &id]).status()
    });
    let mut terminal = Terminal::new(width, height);
    let mut bytes = [0; 4096];
    // When the program ends, reading from the pseudo-terminal fails.
    while let Ok(count @ 1..) = pty.read(&mut bytes) {
        terminal.feed(&bytes[..count]);
    }
    child.wait()?;
    drop(ender.join());
    println!("{}", draw(&terminal, usize::from(width)));
    Ok(())
}

fn draw(terminal: &Terminal, width: usize) -> String {
    let rows = terminal.cells();
    let size = (width as f64 * CELL.0 + 2.0 * MARGIN, rows.len() as f64 * CELL.1 + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n",
        size.0, size.1
    );
    for (number, row) in rows.iter().enumerate() {
        let y = MARGIN + (number as f64 + 0.8) * CELL.1;
        let mut column = 0;
        for part in row.chunk_by(|one, other| one.colour == other.colour) {
            let text: String = part.iter().map(|cell| cell.letter).collect();
            if !text.trim().is_empty() {
                let (x, length) = (MARGIN + column as f64 * CELL.0, text.chars().count() as f64 * CELL.0);
                svg.push_str(&format!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" {} xml:space=\"preserve\">{}</text>\n",
                    paint(part[0]),
                    escape(&text)
                ));
            }
            column += part.len();
        }
    }
    svg.push_str("</svg>");
    svg
}

fn paint(cell: Cell) -> &'static str {
    match cell.colour {
        Colour(32) => "fill=\"#7ec87e\"",
        Colour(33) => "fill=\"#e0b050\"",
        Colour(31) => "fill=\"#e06c6c\"",
        Colour(2) => "fill=\"#7d8590\"",
        Colour(1) => "fill=\"#ffffff\" font-weight=\"bold\"",
        _ => "fill=\"#c9d1d9\"",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
