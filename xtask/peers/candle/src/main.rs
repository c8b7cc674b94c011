//! Products of candle's quantized kernels, as a peer for `cargo xtask bench kernels`. The protocol is that
//! of `xtask/interop/kernels.py`.
//!
//! ```text
//! candle-peer WEIGHTS X TYPE_ID N K M COPIES
//! ```
//!
//! WEIGHTS and X are files: a weight matrix of the type, and M rows of K f32. Prints `ready`, or `none`
//! where candle lacks the type; then, for each line on standard input, multiplies with the next of COPIES
//! copies of the weights and prints the nanoseconds. A line `result PATH` writes the outputs of the first
//! copy there instead. `RAYON_NUM_THREADS` is candle's number of threads too.

use candle_core::quantized::ggml_file::qtensor_from_ggml;
use candle_core::quantized::{GgmlDType, QMatMul};
use candle_core::{Device, Module, Tensor};
use std::error::Error;
use std::io::BufRead;
use std::time::Instant;

/// The types that candle multiplies with on a CPU, by their numbers in ggml.
fn dtype(id: usize) -> Option<GgmlDType> {
    Some(match id {
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        _ => return None,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [weights, activations, numbers @ ..] = args.as_slice() else {
        return Err("usage: candle-peer WEIGHTS X TYPE_ID N K M COPIES".into());
    };
    let numbers = numbers.iter().map(|n| n.parse()).collect::<Result<Vec<usize>, _>>()?;
    let [id, n, k, m, copies] = numbers[..] else {
        return Err("five numbers are needed".into());
    };
    let Some(dtype) = dtype(id) else {
        println!("none");
        return Ok(());
    };
    let bytes = std::fs::read(weights)?;
    let matrices = (0..copies)
        .map(|_| QMatMul::from_qtensor(qtensor_from_ggml(dtype, &bytes, vec![n, k], &Device::Cpu)?))
        .collect::<Result<Vec<_>, _>>()?;
    let floats = std::fs::read(activations)?;
    let floats = floats.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let x = Tensor::from_vec(floats, (m, k), &Device::Cpu)?;
    // It may keep another form of the weights, made on the first use.
    for matrix in &matrices {
        matrix.forward(&x)?;
    }
    println!("ready");

    let mut at = 0;
    for line in std::io::stdin().lock().lines() {
        if let Some(path) = line?.strip_prefix("result ") {
            let y: Vec<f32> = matrices[0].forward(&x)?.flatten_all()?.to_vec1()?;
            std::fs::write(path, y.iter().flat_map(|y| y.to_le_bytes()).collect::<Vec<u8>>())?;
            println!("0");
            continue;
        }
        let start = Instant::now();
        let y = matrices[at].forward(&x)?;
        println!("{}", start.elapsed().as_nanos());
        drop(y);
        at = (at + 1) % copies;
    }
    Ok(())
}
