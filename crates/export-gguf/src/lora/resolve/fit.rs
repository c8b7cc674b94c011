//! Whether a change fits the rows it is for.

use gguf_format::Kind;

use super::super::adapter::{Change, LowRank, Matrix};
use super::place::Place;
use super::{Base, Op, Problem, sides};

impl Base<'_> {
    /// What is done to the rows of `place`, `scale` times as strongly.
    pub(super) fn fit<'a>(&self, place: &Place, change: &'a Change, scale: f64) -> Result<Op<'a>, Problem> {
        let t = &self.tensors[place.tensor];
        let first = change.matrices().next().map(|m| m.name().to_owned()).unwrap_or_default();
        let number = |k: Option<Kind>| matches!(k, Some(Kind::Float | Kind::Block));
        if !t.decodable || !number(t.ty.info().map(|i| i.kind)) {
            return Err((first, format!("{} holds {}, which has no values to change", t.name, t.ty)));
        }
        let (_, width) = sides(&t.dims);
        let rows = place.rows.end - place.rows.start;
        if rows == 0 || width == 0 {
            return Err((first, format!("{} has no values to change", t.name)));
        }
        let (op, strength) = match change {
            Change::LowRank(low) => product(low, &t.name, rows, width, scale)?,
            Change::Add { vector, factor } => {
                same(vector, &t.name, rows, width)?;
                let scale = scale * factor;
                (Op::Add { vector, scale }, scale)
            }
            Change::Replace(with) => {
                same(with, &t.name, rows, width)?;
                if scale != 1.0 {
                    let problem = format!("replaces {}, which cannot be scaled by {scale}; use @1", t.name);
                    return Err((first, problem));
                }
                (Op::Replace { with, plus: place.plus }, scale)
            }
        };
        // What f32 cannot hold is no scale either.
        if !(strength as f32).is_normal() {
            return Err((first, format!("a scale of {strength} merges nothing that makes sense")));
        }
        Ok(op)
    }
}

fn product<'a>(
    low: &'a LowRank,
    name: &str,
    rows: u64,
    width: u64,
    scale: f64,
) -> Result<(Op<'a>, f64), Problem> {
    let (a, b) = (&low.right.matrix, &low.left.matrix);
    let wrong = |m: &Matrix, problem: String| Err((m.name().to_owned(), problem));
    let both = format!("shapes {} and {} of {}", a.shown(), b.shown(), b.name().escape_debug());
    let (Some((left_rows, left_rank)), Some((rank, right_width))) = (low.left.sides(), low.right.sides())
    else {
        return wrong(a, format!("{both} are not those of two matrices"));
    };
    if rank == 0 || left_rank == 0 {
        return wrong(a, format!("{both} are of rank 0"));
    }
    if (left_rows, right_width) != (rows, width) || left_rank != rank {
        let hint = if (left_rank, rank) == (rows, width) && left_rows == right_width {
            "; they are transposed"
        } else if left_rank != rank {
            "; their ranks differ"
        } else {
            ""
        };
        return wrong(a, format!("{both} make no change of {rows} rows of {width} in {name}{hint}"));
    }
    if let Some(promised) = low.promised.filter(|&p| p != rank) {
        return wrong(
            a,
            format!("rank {rank}, and adapter_config.json says {promised}, so the scale cannot be trusted"),
        );
    }
    if let Some(m) = &low.magnitude
        && m.shape().iter().filter(|&&d| d != 1).copied().collect::<Vec<_>>()
            != [rows].repeat(usize::from(rows != 1))
    {
        return wrong(m, format!("shape {} is no length for each of {rows} rows", m.shown()));
    }
    let scale = scale * low.factor(rank);
    let (left, right, magnitude) = (&low.left, &low.right, low.magnitude.as_ref());
    Ok((Op::Product { left, right, rank, scale, magnitude }, scale))
}

/// Checks that a tensor has as many rows as it is for, of the same length.
fn same(m: &Matrix, name: &str, rows: u64, width: u64) -> Result<(), Problem> {
    let fits = match m.shape() {
        [n] => (*n, 1) == (rows, width),
        [n, row] => (*n, *row) == (rows, width),
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let want = if width == 1 { format!("[{rows}]") } else { format!("[{rows}, {width}]") };
    Err((m.name().to_owned(), format!("shape {}, and {name} has {want}", m.shown())))
}
