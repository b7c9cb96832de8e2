//! The work of each program: 100,000 boxes of 128 bytes, as many strings that are freed, and a list that grows.

/// Does it, and says how many bytes are kept.
pub fn work() {
    let mut kept: Vec<Box<[u8; 128]>> = Vec::new();
    for index in 0..100_000u32 {
        kept.push(Box::new([index as u8; 128]));
        std::hint::black_box(index.to_string());
    }
    let sum: u64 = kept.iter().map(|block| u64::from(block[0])).sum();
    println!("kept {} bytes, {sum}", kept.len() * 128);
    // They live at the end.
    std::mem::forget(kept);
}
