//! Columns of text.

use std::io::{self, Write};

/// Wider cells stick out of their column: one long name must not fill a screen with spaces.
const WIDEST: usize = 100;

/// How a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Writes rows of equally many cells, each line behind `indent`, columns two spaces apart and as wide
/// as their widest cell, within [`WIDEST`]. The last column is not padded.
pub(crate) fn write<const N: usize>(
    out: &mut dyn Write,
    indent: &str,
    align: [Align; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let width = |column: usize| {
        rows.iter().map(|r| r[column].chars().count()).filter(|n| *n <= WIDEST).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    for row in rows {
        let mut line = String::from(indent);
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            let gap = if column == 0 { "" } else { "  " };
            match align[column] {
                Align::Left => line.extend([gap, cell.as_str(), pad.as_str()]),
                Align::Right => line.extend([gap, pad.as_str(), cell.as_str()]),
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["name", "n", "x"], ["ü", "100", ""]].map(|r| r.map(String::from));
        let mut out = Vec::new();
        write(&mut out, "  ", [Align::Left, Align::Right, Align::Left], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "  name    n  x\n  ü     100\n");
    }
}
