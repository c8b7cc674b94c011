use super::*;

/// Candidates as ggml finds them: all points sorted by (distance, index), cut after some distances.
fn by_sorting(codes: &[u16], code: u16, shape: Shape) -> Vec<u16> {
    let distance = |other: u16| -> u32 {
        let square = |i| u32::from(digit(code, i, shape).abs_diff(digit(other, i, shape))).pow(2);
        (0..shape.group).map(square).sum()
    };
    let mut sorted: Vec<(u32, usize)> = codes.iter().map(|&c| distance(c)).zip(0..).collect();
    sorted.sort_unstable();
    let mut distances: Vec<u32> = sorted.iter().map(|&(d, _)| d).collect();
    distances.dedup();
    distances.truncate(shape.shells);
    sorted.iter().filter(|(d, _)| distances.contains(d)).map(|&(_, i)| codes[i]).collect()
}

fn check<const N: usize>(points: &[[u8; N]], shape: Shape, book: &Codebook) {
    let codes = codes(points, shape);
    assert!(codes.is_sorted() && codes[0] == 0);
    let exists = |code: u16| (0..shape.group).all(|i| digit(code, i, shape) < shape.levels);
    let (mut on, mut off) = (0, 0);
    for code in (0..=codes[codes.len() - 1] | 1 << (shape.group * shape.bits - 1)).filter(|&c| exists(c)) {
        if book.vectors(code.into()) == 0 {
            assert_eq!(codes[usize::from(book.index(code))], code);
            on += 1;
            continue;
        }
        // Every eleventh: the points in between are of the same kinds, and sorting takes long.
        off += 1;
        if off % 11 != 0 {
            continue;
        }
        let lists = book.candidates(code.into());
        assert_eq!(lists.len(), book.vectors(code.into()) as usize);
        let in_order = (0..8).flat_map(|lane| lists.iter().map(move |list| list[lane]));
        let want = by_sorting(&codes, code, shape);
        let filled = want.iter().copied().chain(std::iter::repeat(want[0]));
        assert!(in_order.eq(filled.take(8 * lists.len())), "code {code}");
        assert!(8 * lists.len() < want.len() + 8);
    }
    assert_eq!(on, codes.len());
    assert!(off > 3000);
}

macro_rules! books {
    ($($name:ident $grid:ident $shape:expr;)+) => { $(
        #[test]
        fn $name() {
            let points = grid::$grid.map(|point| point.to_le_bytes());
            check(&points, $shape, super::$name());
        }
    )+ };
}

books! {
    iq1 IQ1S Shape { shells: 3, ..PAIRS };
    iq2_xxs IQ2XXS PAIRS;
    iq2_xs IQ2XS PAIRS;
    iq2_s IQ2S Shape { shells: 1, ..PAIRS };
    iq3_xxs IQ3XXS TRIPLES;
    iq3_s IQ3S Shape { shells: 3, ..TRIPLES };
}
