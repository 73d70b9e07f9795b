//@ shuffle SUBGROUP
fn other(v: f32, step: u32) -> f32 { return subgroupShuffleXor(v, step); }
