//! Runs a program on a terminal, ends it as Ctrl-C would, and draws what is seen then as SVG:
//!
//! ```text
//! cargo run -p kubectl-informer --example picture -- 118 34 8 target/release/kubectl-informer demo > docs/demo.svg
//! ```
//!
//! The numbers are columns, rows and seconds.

#[path = "../tests/support/svg.rs"]
mod svg;
#[path = "../tests/support/terminal.rs"]
#[expect(dead_code, reason = "tests look at more of it")]
mod terminal;

use std::error::Error;
use std::io::Read as _;
use std::process::Command;
use std::time::Duration;

use terminal::Terminal;

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
        // The path of a temporary file in the picture is then not one of this machine.
        .env("TMPDIR", ".")
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
    print!("{}", svg::draw(&terminal, usize::from(width)));
    Ok(())
}
