//! Adapters merged into models: small numbers, so that every result is exact and bits can be compared.

mod hostile;
mod kinds;
mod make;
mod peft;
mod refused;
mod rows;
mod shown;
mod types;
