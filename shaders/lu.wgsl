// LU factors of matrices, in place, with exchanges of rows: the pivot is the largest element of its column,
// of several the first. `width` columns from column `start` on and the rows from there on are a matrix of
// their own, but for the exchanges, which move whole rows.
//
// bindings: out, order, exchanges, det, p. grid: one workgroup of 256 threads per matrix. `order` tells which
// row of the matrix a row of the factors is, `exchanges` the rows that were exchanged, from 1, as in LAPACK,
// `det` the product of the pivots with the sign of the exchanges; what columns before left there is read.
struct Params { count: u32, m: u32, n: u32, start: u32, width: u32 }
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<storage, read_write> order: array<u32>;
@group(0) @binding(2) var<storage, read_write> exchanges: array<u32>;
@group(0) @binding(3) var<storage, read_write> det: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;

var<workgroup> sizes: array<f32, 256>;
var<workgroup> rows: array<u32, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let matrix = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (matrix >= p.count) { return; }
  let a = matrix * p.m * p.n;
  let first = matrix * p.m;
  let depth = min(p.m, p.n);
  var product = 1.0;
  if (p.start == 0u) {
    for (var i = t; i < p.m; i += 256u) { order[first + i] = i; }
  } else {
    product = det[matrix];
  }
  let end = p.start + p.width;
  for (var k = p.start; k < min(end, depth); k += 1u) {
    var size = -1.0;
    var row = k;
    for (var i = k + t; i < p.m; i += 256u) {
      let own = abs(out[a + i * p.n + k]);
      if (own > size) {
        size = own;
        row = i;
      }
    }
    sizes[t] = size;
    rows[t] = row;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
      if (t < half) {
        let other = sizes[t + half];
        let is_first = rows[t + half] < rows[t];
        if (other > sizes[t] || (other == sizes[t] && other >= 0.0 && is_first)) {
          sizes[t] = other;
          rows[t] = rows[t + half];
        }
      }
      workgroupBarrier();
    }
    let pivot = rows[0];
    for (var j = t; j < p.n && pivot != k; j += 256u) {
      let above = out[a + k * p.n + j];
      out[a + k * p.n + j] = out[a + pivot * p.n + j];
      out[a + pivot * p.n + j] = above;
    }
    storageBarrier();
    if (t == 0u) {
      let above = order[first + k];
      order[first + k] = order[first + pivot];
      order[first + pivot] = above;
      exchanges[matrix * depth + k] = pivot + 1u;
    }
    let d = out[a + k * (p.n + 1u)];
    product *= select(d, -d, pivot != k);
    for (var i = k + 1u + t; i < p.m && d != 0.0; i += 256u) { out[a + i * p.n + k] /= d; }
    storageBarrier();
    let width = end - k - 1u;
    for (var e = t; e < (p.m - k - 1u) * width; e += 256u) {
      let i = a + (k + 1u + e / width) * p.n;
      let j = k + 1u + e % width;
      out[i + j] -= out[i + k] * out[a + k * p.n + j];
    }
    storageBarrier();
  }
  if (t == 0u) { det[matrix] = product; }
}
