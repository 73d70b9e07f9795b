// Running sums over the 256 threads of a workgroup.
var<workgroup> sums: array<u32, 256>;

// The sum of what threads 0 to t have.
fn total_to(t: u32, mine: u32) -> u32 {
  sums[t] = mine;
  workgroupBarrier();
  var total = mine;
  for (var step = 1u; step < 256u; step *= 2u) {
    if (t >= step) { total += sums[t - step]; }
    workgroupBarrier();
    sums[t] = total;
    workgroupBarrier();
  }
  return total;
}
