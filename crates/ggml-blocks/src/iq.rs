//! The encoders of the codebook formats: IQ1, IQ2 and IQ3.

mod block;
mod codebook;
mod iq1_m;
mod iq1_s;
mod iq2;
mod iq3;
mod nearest;
mod split;
mod steps;
mod ternary;
