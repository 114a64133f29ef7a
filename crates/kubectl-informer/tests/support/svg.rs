//! Draws a screen as SVG.

use super::terminal::{Cell, Colour, Terminal};

/// The width and the height of a character.
const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 16.0;

/// The screen on a dark background.
pub(crate) fn draw(terminal: &Terminal, width: usize) -> String {
    let rows = terminal.cells();
    let (width, height) = size(width, rows.len());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n"
    );
    for (number, row) in rows.iter().enumerate() {
        let top = MARGIN + number as f64 * CELL.1;
        let mut column = 0;
        for part in row.chunk_by(|one, other| one.colour == other.colour) {
            let columns = columns(part);
            if part[0].colour == REVERSED {
                let (x, length) = (MARGIN + column as f64 * CELL.0, columns as f64 * CELL.0);
                svg.push_str(&format!(
                    "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"#c9d1d9\"/>\n",
                    CELL.1
                ));
            }
            // Each word has a place of its own, whatever the widths of the font.
            let mut at = column;
            for word in part.chunk_by(|one, other| (one.letter == ' ') == (other.letter == ' ')) {
                if word[0].letter != ' ' {
                    let (x, length) = (MARGIN + at as f64 * CELL.0, self::columns(word) as f64 * CELL.0);
                    let text: String = word.iter().map(|cell| cell.letter).collect();
                    svg.push_str(&format!(
                        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" {}>{}</text>\n",
                        top + 0.8 * CELL.1,
                        paint(part[0]),
                        escape(&text)
                    ));
                }
                at += self::columns(word);
            }
            column += columns;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The columns that characters take.
fn columns(cells: &[Cell]) -> usize {
    cells.iter().map(|cell| cell.width).sum()
}

/// The size of the picture of a screen.
fn size(columns: usize, rows: usize) -> (f64, f64) {
    (columns as f64 * CELL.0 + 2.0 * MARGIN, rows as f64 * CELL.1 + 2.0 * MARGIN)
}

/// Characters in the colour of the background.
const REVERSED: Colour = Colour(7);

fn paint(cell: Cell) -> &'static str {
    match cell.colour {
        Colour(32) => "fill=\"#7ec87e\"",
        Colour(33) => "fill=\"#e0b050\"",
        Colour(31) => "fill=\"#e06c6c\"",
        Colour(2) => "fill=\"#7d8590\"",
        Colour(1) => "fill=\"#ffffff\" font-weight=\"bold\"",
        REVERSED => "fill=\"#16181d\"",
        _ => "fill=\"#c9d1d9\"",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
