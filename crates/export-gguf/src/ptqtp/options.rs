//! How to fit, and what is wrong with a request.

use std::fmt;

use super::{GROUP, MAX_PLANES};

/// How to fit planes to weights. The defaults are those of which the bytes are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Planes: 1, 2 or 3.
    pub planes: usize,
    /// Whether the scales keep a ratio of 3, which makes the planes the digits of a uniform quantizer
    /// of 3, 9 or 27 levels. Needs two planes.
    pub tie_scales: bool,
    /// Weights that share scales. Only [`GROUP`] can be packed.
    pub group_len: usize,
    /// The most rounds of the free fit.
    pub max_rounds: u32,
    /// The free fit ends when the scales move less than this.
    pub tolerance: f32,
    /// What the regression adds to the diagonal.
    pub ridge: f32,
    /// The most that it adds where the system is badly conditioned.
    pub max_ridge: f32,
    /// The largest condition number that passes as good.
    pub max_condition: f32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            planes: 2,
            tie_scales: false,
            group_len: GROUP,
            max_rounds: 50,
            tolerance: 1e-4,
            ridge: 1e-8,
            max_ridge: 1.0,
            max_condition: 1e6,
        }
    }
}

impl Options {
    /// So many planes, everything else as it is by default.
    #[must_use]
    pub fn with_planes(planes: usize) -> Self {
        Self { planes, ..Self::default() }
    }

    /// Whether every option makes sense.
    ///
    /// # Errors
    /// [`Error::Option`] with the name of the first that does not.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |option, value: &dyn fmt::Display, wanted| {
            Err(Error::Option { option, value: value.to_string(), wanted })
        };
        if !(1..=MAX_PLANES).contains(&self.planes) {
            return wrong("planes", &self.planes, "1, 2 or 3");
        }
        if self.tie_scales && self.planes < 2 {
            return wrong("tie_scales", &self.tie_scales, "false with a single plane");
        }
        if self.group_len == 0 {
            return wrong("group_len", &self.group_len, "at least 1");
        }
        if self.max_rounds == 0 {
            return wrong("max_rounds", &self.max_rounds, "at least 1");
        }
        if self.tolerance.is_nan() || self.tolerance < 0.0 {
            return wrong("tolerance", &self.tolerance, "a number that is not negative");
        }
        if self.ridge.is_nan() || self.ridge <= 0.0 {
            return wrong("ridge", &self.ridge, "a positive number");
        }
        if self.max_ridge.is_nan() || self.max_ridge < self.ridge {
            return wrong("max_ridge", &self.max_ridge, "at least the ridge");
        }
        if self.max_condition.is_nan() || self.max_condition < 1.0 {
            return wrong("max_condition", &self.max_condition, "at least 1");
        }
        Ok(())
    }

    /// [`Options::check`], and whether the result can be packed.
    pub(super) fn check_packable(&self) -> Result<(), Error> {
        self.check()?;
        if self.group_len != GROUP {
            let value = self.group_len.to_string();
            return Err(Error::Option { option: "group_len", value, wanted: "256, the block of TQ2_0" });
        }
        Ok(())
    }
}

/// Why nothing was fitted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An option makes no sense.
    Option {
        /// Its name, as the field of [`Options`] has it.
        option: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        wanted: &'static str,
    },
    /// A slice has the wrong length.
    Length {
        /// Of what.
        what: &'static str,
        /// Its length.
        len: usize,
        /// What the length must be, or a multiple of it.
        wanted: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option { option, value, wanted } => write!(f, "option {option} is {value}, not {wanted}"),
            Self::Length { what, len, wanted } => {
                write!(f, "{len} {what}, where {wanted} or whole multiples of it are wanted")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Whether `len` is a whole number of `unit`.
pub(super) fn whole(what: &'static str, len: usize, unit: usize) -> Result<(), Error> {
    match len.checked_rem(unit) {
        Some(0) => Ok(()),
        _ => Err(Error::Length { what, len, wanted: unit }),
    }
}

/// Whether `len` is `wanted`.
pub(super) fn same(what: &'static str, len: usize, wanted: usize) -> Result<(), Error> {
    if len == wanted { Ok(()) } else { Err(Error::Length { what, len, wanted }) }
}
