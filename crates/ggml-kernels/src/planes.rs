//! Plane sets: a weight matrix that is the sum of ternary ones.

use std::ops::Range;

use ggml_blocks::formats::tq2_0::Tq2_0;
use ggml_blocks::{Block, GgmlType, cast_blocks};
use rayon::prelude::*;

use crate::error::Error;
use crate::isa::Portable;
use crate::layout::SuperLayout;
use crate::layout::k::Foldedx8;
use crate::layout::pack::{Form, SuperPack};
use crate::level::Kernels;
use crate::lhs::{Lhs, LhsRef, quantize_into};
use crate::matmul::{check_lhs, quantized, rows};
use crate::packed::Packed;
use crate::rhs::Rhs;
use crate::scratch::Scratch;
use crate::task::Weights;
use crate::unpack::{Super, SuperUnit};

/// A weight matrix `[n, k]` that is the sum of one to three planes: matrices of its shape in `TQ2_0`, as
/// PTQTP (arXiv 2509.16989) makes them. In files they are the tensors `NAME.ptqtp0`, `NAME.ptqtp1`,
/// `NAME.ptqtp2`, coarsest first.
///
/// ```
/// use ggml_kernels::{Kernels, Packed, PlaneSet, Rhs, Scratch};
/// use gguf_mmap::GgufFile;
/// # use ggml_kernels::GgmlType;
/// # use gguf_format::Builder;
///
/// /// The planes that stand for a matrix, as the file has them.
/// fn planes<'a>(file: &'a GgufFile, name: &str) -> Result<PlaneSet<'a>, Box<dyn std::error::Error>> {
///     let mut planes = Vec::new();
///     while let Some(tensor) = file.tensor(&format!("{name}.ptqtp{}", planes.len())) {
///         let &[k, n] = tensor.dims() else { return Err("not a matrix".into()) };
///         let bytes = file.data(&tensor).ok_or("not mapped")?;
///         planes.push(Rhs::new(tensor.ty(), bytes, n.try_into()?, k.try_into()?)?);
///     }
///     Ok(PlaneSet::new(planes)?)
/// }
///
/// /// The matrix as it multiplies fastest: folded where the file says that scales are tied.
/// fn load(file: &GgufFile, name: &str) -> Result<Packed, Box<dyn std::error::Error>> {
///     let set = planes(file, name)?;
///     let tied = file.gguf().get("fucina.ptqtp.tie_scales").and_then(|v| v.as_u64()) == Some(1);
///     let kernels = Kernels::best();
///     Ok(if tied && set.planes().len() == 2 { kernels.pack_folded(&set)? } else { kernels.pack_planes(&set)? })
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("planes.gguf");
/// # // Every trit of the coarse plane is 1, every one of the fine plane -1; scales of 3 and 1.
/// # let plane = |trits: u8, d: u16| [vec![trits; 64], d.to_le_bytes().to_vec()].concat().repeat(8);
/// # let mut builder = Builder::new();
/// # builder.set("general.architecture", "llama");
/// # builder.set("fucina.ptqtp.version", 1_u32).set("fucina.ptqtp.tie_scales", 1_u32);
/// # for p in 0..2 {
/// #     builder.tensor(&format!("blk.0.ffn_up.weight.ptqtp{p}"), &[256, 8], GgmlType::TQ2_0)?;
/// # }
/// # let data = [plane(0xAA, 0x4200), plane(0, 0x3C00)];
/// # std::fs::write(&path, builder.layout()?.whole(&[&data[0], &data[1]])?)?;
/// let file = GgufFile::open(&path)?;
/// let packed = load(&file, "blk.0.ffn_up.weight")?;
/// let mut y = [0.0; 8];
/// packed.matmul(&[0.5; 256], &mut y, &mut Scratch::new())?;
/// // Every weight of this file is 3 - 1.
/// assert!(y.iter().all(|y| (y - 256.0).abs() < 0.01));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PlaneSet<'a> {
    planes: Vec<Rhs<'a>>,
}

impl<'a> PlaneSet<'a> {
    /// The most planes.
    pub const MAX: usize = 3;

    /// A set of planes, coarsest first.
    ///
    /// # Errors
    /// [`Error::Planes`] unless there are one to three, [`Error::PlaneType`] unless all are `TQ2_0`,
    /// [`Error::PlaneShape`] unless all have the same shape.
    pub fn new(planes: impl Into<Vec<Rhs<'a>>>) -> Result<Self, Error> {
        let planes = planes.into();
        if planes.is_empty() || planes.len() > Self::MAX {
            return Err(Error::Planes { count: planes.len() });
        }
        let need = [planes[0].n(), planes[0].k()];
        for (plane, w) in planes.iter().enumerate() {
            if w.ty() != GgmlType::TQ2_0 {
                return Err(Error::PlaneType { plane, ty: w.ty() });
            }
            let have = [w.n(), w.k()];
            if have != need {
                return Err(Error::PlaneShape { plane, have, need });
            }
        }
        Ok(Self { planes })
    }

    /// The planes, coarsest first.
    #[must_use]
    pub fn planes(&self) -> &[Rhs<'a>] {
        &self.planes
    }

    /// Rows: how many outputs.
    #[must_use]
    pub fn n(&self) -> usize {
        self.planes[0].n()
    }

    /// Weights per row: how many inputs.
    #[must_use]
    pub fn k(&self) -> usize {
        self.planes[0].k()
    }

    /// The type that activations are quantized to.
    #[must_use]
    pub fn activations(&self) -> GgmlType {
        GgmlType::Q8_K
    }
}

impl Kernels {
    /// `y[m, n] = x[m, k] · wᵀ`, with `m` told by the length of `x`. The activations are quantized once.
    /// The bits are those of each plane's [`Kernels::matmul`], added in f32 in the order of the planes:
    /// `y = p0`, `y = y + p1`, `y = y + p2`.
    ///
    /// # Errors
    /// As for [`Kernels::matmul`].
    pub fn matmul_planes(
        self,
        x: &[f32],
        w: &PlaneSet<'_>,
        y: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        rows(x, w.k(), w.n(), y)?;
        let ty = w.activations();
        let mut bytes = std::mem::take(&mut scratch.lhs);
        let done = quantize_into(ty, x, w.k(), &mut bytes).map(|()| {
            let lhs = LhsRef { ty, k: w.k(), bytes: &bytes };
            quantized(self.token, Weights::Planes(w.planes()), lhs, y, scratch);
        });
        scratch.lhs = bytes;
        done
    }

    /// [`Kernels::matmul_planes`] with activations that are quantized already, to `Q8_K`.
    ///
    /// # Errors
    /// As for [`Kernels::matmul_lhs`].
    pub fn matmul_planes_lhs(
        self,
        lhs: &Lhs,
        w: &PlaneSet<'_>,
        y: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        check_lhs(lhs, Some(w.activations()), w.k(), w.n(), y)?;
        quantized(self.token, Weights::Planes(w.planes()), lhs.view(), y, scratch);
        Ok(())
    }

    /// Copies a set into the order that these kernels read: one stream, in which the planes alternate, for
    /// one pass over the activations. The products have the bits of [`Kernels::matmul_planes`]. In parallel
    /// in the caller's rayon pool.
    ///
    /// # Errors
    /// None so far: a set that exists can be packed.
    pub fn pack_planes(self, w: &PlaneSet<'_>) -> Result<Packed, Error> {
        let form = match w.planes().len() {
            1 => Form::One(GgmlType::TQ2_0),
            2 => Form::Planes2,
            _ => Form::Planes3,
        };
        self.pack_as(form, w.n(), w.k(), |columns, out| {
            for (p, plane) in w.planes.iter().enumerate() {
                self.fill(plane, columns.clone(), [p, w.planes.len()], out);
            }
        })
    }

    /// Folds a set of two planes into one matrix of four bits per weight, for sets whose scales are *tied*:
    /// whose fit kept the coarse scale at three times the fine one. A file says so of its sets with the key
    /// `fucina.ptqtp.tie_scales`, which is `u32` 1; do not call this for files without.
    ///
    /// A level is three times the coarse plane's trit plus the fine one's, and its scale is the fine plane's.
    /// The coarse plane's scale is not read: rounded to f16 for itself, it is not exactly three times the
    /// fine one. So products differ from those of [`Kernels::matmul_planes`], by less than the encoding
    /// has lost: `docs/kernels.md` has the bound.
    ///
    /// # Errors
    /// [`Error::Length`] unless the set has two planes. [`Error::Untied`] for the first block whose coarse
    /// scale is not three times the fine one within the rounding of both, as when a file claims the key
    /// wrongly; where the scales are NaN or infinite, both must be.
    pub fn pack_folded(self, w: &PlaneSet<'_>) -> Result<Packed, Error> {
        let [coarse, fine] = w.planes() else {
            return Err(Error::Length { what: "planes to fold", need: 2, have: w.planes.len() });
        };
        check_tied(coarse, fine)?;
        let cols = self.token.cols();
        self.pack_as(Form::Folded, w.n(), w.k(), |columns, out| fold(coarse, fine, columns, cols, out))
    }
}

fn blocks<'a>(w: &'a Rhs<'_>, columns: Range<usize>) -> &'a [Tq2_0] {
    cast_blocks(w.rows(columns)).unwrap_or(&[])
}

/// Finds the first block whose scales are not tied.
fn check_tied(coarse: &Rhs<'_>, fine: &Rhs<'_>) -> Result<(), Error> {
    let per_row = fine.k() / Tq2_0::LEN;
    let [c, f] = [coarse, fine].map(|w| blocks(w, 0..w.n()));
    let scales = c.par_iter().zip(f).map(|(c, f)| [c.d.to_f32(), f.d.to_f32()]).enumerate();
    match scales.find_first(|&(_, [c, f])| !tied(c, f)) {
        Some((at, [coarse, fine])) => {
            Err(Error::Untied { coarse, fine, block: at % per_row, row: at / per_row })
        }
        None => Ok(()),
    }
}

/// Whether two scales can be `3s` and `s`, each rounded to f16: that errs by at most 2^-11 of the number,
/// or by 2^-25 where f16 has fewer digits, and three times the error of `s` counts.
fn tied(coarse: f32, fine: f32) -> bool {
    const RELATIVE: f64 = 1.0 / 1024.0 + 1.0 / 1_048_576.0;
    const ABSOLUTE: f64 = 1.0 / 8_388_608.0;
    if !coarse.is_finite() || !fine.is_finite() {
        return !coarse.is_finite() && !fine.is_finite();
    }
    let [coarse, fine] = [coarse, fine].map(f64::from);
    (coarse - 3.0 * fine).abs() <= RELATIVE * coarse.abs() + ABSOLUTE
}

/// Puts both planes' columns of a group into its bytes.
fn fold(coarse: &Rhs<'_>, fine: &Rhs<'_>, columns: Range<usize>, cols: usize, out: &mut [u8]) {
    let per_row = fine.k() / Tq2_0::LEN;
    let [coarse, fine] = [coarse, fine].map(|w| blocks(w, columns.clone()).chunks_exact(per_row));
    let mut units = [SuperUnit::ZERO; 2];
    for (c, (coarse, fine)) in coarse.zip(fine).enumerate() {
        let start = c / 8 * Foldedx8::UNIT;
        let out = out.chunks_exact_mut(cols * Foldedx8::UNIT);
        for ((coarse, fine), out) in coarse.iter().zip(fine).zip(out) {
            coarse.unit(Portable, &mut units[0]);
            fine.unit(Portable, &mut units[1]);
            let [coarse, folded] = &mut units;
            for (q, c) in folded.levels.iter_mut().zip(&coarse.levels) {
                *q += 3 * c;
            }
            Foldedx8::put(fine, folded, c % 8, &mut out[start..start + Foldedx8::UNIT]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tied;
    use ggml_blocks::F16;

    fn rounded(x: f32) -> f32 {
        F16::from_f32(x).to_f32()
    }

    #[test]
    fn three_times_a_scale_is_tied_whatever_the_rounding() {
        // Every 4099th positive f32 up to the largest scale that can be tripled.
        let mut worst = 0.0f64;
        for bits in (0..21_834.5f32.to_bits()).step_by(4099) {
            let s = f32::from_bits(bits);
            let (coarse, fine) = (rounded(3.0 * s), rounded(s));
            assert!(tied(coarse, fine) && tied(-coarse, -fine), "{s}");
            if coarse > 1e-3 {
                worst = worst.max(f64::from((coarse - 3.0 * fine).abs() / coarse));
            }
        }
        assert!(worst > 0.7 / 1024.0, "the tolerance is hardly looser than need be: {worst}");
    }

    #[test]
    fn others_are_not() {
        for (coarse, fine) in [(3.02, 1.0), (2.98, 1.0), (1.0, 3.0), (-3.0, 1.0), (0.0, 1e-3)] {
            assert!(!tied(coarse, fine), "{coarse} {fine}");
        }
        // The coarse scale was clamped: its plane is worth less than three times the fine one.
        assert!(!tied(65_504.0, 30_000.0));
        assert!(!tied(f32::INFINITY, 1.0) && !tied(3.0, f32::NAN) && tied(f32::INFINITY, f32::NAN));
    }
}
