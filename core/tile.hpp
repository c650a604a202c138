// Plain structures shared by the verbs (compiled once) and the tile kernels (compiled per instruction set).
// No member functions: an inline function here could be emitted with the wrong instructions.
#pragma once
#include <cstdint>

#include "program.hpp"

namespace mercer {

// A sparse matrix in compressed rows; column indices increase within a row.
template <class T> struct Csr {
    const T* data;
    const int64_t* indices;
    const int64_t* indptr;
};

// The stored entries of the z rows of one column of tiles, by coordinate: a hash table with open addressing,
// whose places name a coordinate (-1: none) and its entries, columns of the tile and values.  A coordinate
// that many rows store has one entry for each of `full` columns, zeros included.
struct SparsePlace {
    int64_t coordinate;
    int32_t first, last;
};
template <class T> struct SparseBlock {
    const SparsePlace* places;
    const int32_t* column;
    const T* value;
    // The first place to look is (coordinate * kSparseHash) >> shift, the next one follows.
    int shift;
    int64_t mask;
    int32_t full;  // a multiple of the panel
};
constexpr uint64_t kSparseHash = 0x9e3779b97f4a7c15;

// The rows x_i and z_j that a primitive compares.  In same mode z is x.
template <class T> struct View {
    int64_t d;
    bool sparse;
    bool expand;      // squared distances by |x|^2 + |z|^2 - 2 x.z with repair, else by differences
    int64_t terms;    // most terms of such a sum: d, or what a sparse row stores
    const T *x, *z;   // dense, row-major n*d and m*d
    const T* panels;  // z in panels: [column / P][k][column % P], the last panel filled with the last row
    Csr<T> sx, sz;
    const SparseBlock<T>* blocks;  // z for sparse rows without panels, one for each `block` columns
    int64_t block;
    const T *xx, *zz;       // squared norms of the rows, for `expand`
    const T* phases;        // sin and cos of x, row-major n*2d, for PERIODIC
    const T* phase_panels;  // the same of z in panels of 2d coordinates
    bool grouped;           // rows of x are regrouped for the matrix product (Work::group)
};

template <class T> struct Row {
    // Lengths n and m; v is u in same mode; v is readable to the next multiple of the panel.
    const T *u, *v;
};

template <class T> struct Call {
    const Op* ops;
    int32_t steps, depth, primitives;
    const double* params;
    int32_t nparams;
    int64_t n, m;
    bool same;
    const View<T>* views;
    const Row<T>* rows;
    const double* const* columns;
};

// Rows i0 .. i0+rows and columns j0 .. j0+cols of K, held row-major with stride ld (a multiple of the panel).
// `pairs` marks the diagonal held as one row: entry j is k(x_{j0+j}, x_{j0+j}).
struct Tile {
    int64_t i0, rows, j0, cols, ld;
    bool pairs;
};

// Buffers of one thread.  `area` counts the elements of the largest tile, `strip` those of the largest strip.
template <class T> struct Work {
    T* result;                 // area: the tile of K
    T* primitives;             // primitives * area
    T* stack;                  // depth * strip
    T* values;                 // steps * strip (contract)
    T* adjoints;               // steps * strip (contract)
    T* seeds;                  // area: W (contract)
    T* slopes;                 // primitives * area: adjoints of the primitives (contract)
    T* lanes;                  // (3 * largest d + 3) * panel: running products (contract)
    T* dense;                  // largest sparse d, zero between uses (contract)
    T* group;                  // the tile's rows of one view, regrouped for the matrix product
    const void* grouped_view;  // which view, and its first row; kept from tile to tile of a stripe
    int64_t grouped_row;
    int64_t area, strip;
};

// Where `contract` adds up, in float64.  Rows and inputs are whole vectors, indexed by i and j.
struct Gradient {
    double* params;
    double* const* views;  // per view (2, d)
    double* const* u;      // per row vector, n
    double* const* v;      // per row vector, m
    double* const* x;      // per view, n*d; null unless input gradients are wanted
    double* const* z;      // per view, m*d
    const char* wanted;    // per view: whether `views` matters
};

// What one instruction set offers.
template <class T> struct Kernels {
    int64_t panel;
    // out[q][k][l] = a[(q*panel + l)*rs + k*cs], the last rows repeated to fill the last panel.
    void (*pack)(const T* a, int64_t rows, int64_t cols, int64_t rs, int64_t cs, T* out);
    void (*norms)(const T* x, int64_t n, int64_t d, T* out);
    // out[2i] = sin x_i, out[2i+1] = cos x_i.
    void (*phases)(const T* x, int64_t count, T* out);
    // cosines[j] = weight[j] cos phase[j] and sines[j] = weight[j] sin phase[j]; `past` as below.
    void (*waves)(const T* phase, const T* weight, int64_t count, T* cosines, T* sines, bool past);
    // work.result = the tile of K.
    void (*evaluate)(const Call<T>& call, const Tile& tile, Work<T>& work);
    // work.seeds holds W (zero beyond tile.cols); adds this tile's share of d(sum W*K).
    void (*differentiate)(const Call<T>& call, const Tile& tile, Work<T>& work, const Gradient& grad);
    // c[i][l] (+)= sum_k a[i*rs + k*cs] panels[..][k][l]; c has stride ld >= panels*panel.
    void (*multiply)(const T* a, int64_t rs, int64_t cs, int64_t rows, int64_t depth, const T* panels,
                     int64_t panel_stride, int64_t npanels, T* c, int64_t ld, bool accumulate);
    // y[i] += sum_j K[i][j] v[j], and if w: yt[j] += sum_i K[i][j] w[i].
    void (*matvec)(const T* K, int64_t rows, int64_t cols, int64_t ld, const T* v, double* y, const T* w,
                   double* yt);
    // out = a, rows * cols with strides ld and out_ld, and whether all of it is finite; out = a'.
    // `past`: whole cache lines are written past the caches, and the writer calls `drain` when it is done.
    bool (*copy)(const T* a, int64_t rows, int64_t cols, int64_t ld, T* out, int64_t out_ld, bool past);
    void (*transpose)(const T* a, int64_t rows, int64_t cols, int64_t ld, T* out, int64_t out_ld, bool past);
    void (*drain)();
    void (*elementwise)(int which, const T* in, T* out, int64_t count, double p);
};

struct Isa {
    const char* name;
    Kernels<double> f64;
    Kernels<float> f32;
};

}  // namespace mercer
