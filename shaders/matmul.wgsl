// Batched matrix product of any strides. Operands, parameters and algorithms are those of the texts in lib/.
//
// bindings  0 x (read), 1 y (read), 2 out (write), 3 params
// entries   main, thin; parts: adds the parts of k, which the other two have written in T
// grid      one workgroup per tile, part and batch, tiles fastest; linear fold over x, y, z
//           thin: tiles of 1024 / SLICES columns; parts: ceil(batch * m * ceil(n / 4) / 256) workgroups
// workgroup 256 threads, each owning 4 x 4, 4 x 8 or 8 x 8 results; up to 16 KiB of workgroup memory
//@ use tile
//@ use tile_threads
//@ use matmul
//@ words out
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

fn store(w: u32, v: vec2<T>, sum: vec2<T>) { store_out(w, v); }
fn store4(i: u32, v: vec4<T>, sum: vec4<T>) { store4_out(i, v); }

fn store_quad(at: Place, row: u32, column: u32, v: vec4<T>) {
  if (!WHOLE && (row >= p.m || column >= p.n)) { return; }
  write(index_of(at, row, column), p.n - column, v, v);
}

// Of a part, by vectors.
fn store_sums(at: Place, row: u32, v: vec4<T>) { store4_out(at.out + p.m * p.out_rs + row, v); }
