// The verbs of the core: gram, apply, contract and their diagonals, on plain pointers.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "threads.hpp"
#include "tile.hpp"

namespace mercer {

// Rows of the parts that a caller may leave out pairs of: a whole number of tiles.
constexpr int64_t kPart = 96;

// Data as the caller brings it.  Pointers are borrowed; indices of sparse rows were widened to int64.
template <class T> struct SparseRows {
    const T* data = nullptr;
    std::vector<int64_t> indices, indptr;
    int64_t rows = 0;
};
template <class T> struct ViewInput {
    int64_t d = 0;
    bool sparse = false;
    const T *x = nullptr, *z = nullptr;
    SparseRows<T> sx, sz;
};
template <class T> struct RowInput {
    const T *u = nullptr, *v = nullptr;
};
template <class T> struct Inputs {
    int64_t n = 0, m = 0;
    bool same = false;
    std::vector<ViewInput<T>> views;
    std::vector<RowInput<T>> rows;
    std::vector<std::vector<double>> columns;
    std::vector<char> wanted;  // per view: whether `contract` owes its coordinates a gradient; empty: all
    // In same mode, for `apply` and `contract`: where parts of the rows end, at multiples of kPart but for
    // the last.  Pairs of rows of one part are left out, except for those of the part `kept`.
    std::vector<int64_t> ends;
    int64_t kept = 0;
};

// Gradients of L = sum_ij W_ij K_ij.  In same mode only the sums u + v and x + z have a meaning: the upper
// triangle of W is folded with the lower one.
struct Gradients {
    std::vector<double> params;
    // One for each view: (2, d), empty for sparse ones not wanted; x and z if asked for.
    std::vector<std::vector<double>> views, u, v, x, z;
};

// W of `contract`: explicit n*m, or U V' with r columns.
template <class T> struct Weights {
    const T* w = nullptr;
    const T *u = nullptr, *v = nullptr;
    int64_t r = 0;
};

// Throws std::invalid_argument unless the data fits the program; every verb calls it first.
template <class T> void check(const Program& program, const Inputs<T>& in);

template <class T> bool gram(const Program&, const Inputs<T>&, T* out, int threads, const Poll&);
template <class T>
void apply(const Program&, const Inputs<T>&, const T* V, int64_t r, T* out, int threads, const Poll&);
template <class T> void diag(const Program&, const Inputs<T>&, T* out, int threads, const Poll&);
template <class T>
Gradients contract(const Program&, const Inputs<T>&, const Weights<T>&, bool inputs, int threads,
                   const Poll&);
template <class T>
Gradients contract_diag(const Program&, const Inputs<T>&, const T* w, bool inputs, int threads, const Poll&);

// out = (weight cos t | weight sin t), t the n*m products of rows and frequencies, or x itself without them.
template <class T>
void waves(const T* x, int64_t n, int64_t d, const T* frequencies, const T* weight, int64_t m, T* out,
           int threads, const Poll&);

// The instruction set in use; `force_isa` changes it (for tests) and says whether this CPU has it.
const Isa& current_isa();
bool force_isa(const std::string& name);

template <class T> const Kernels<T>& kernels();

// Whether so many values are written past the caches: they would not stay in them.
template <class T> constexpr bool past_caches(int64_t count) {
    return count * int64_t(sizeof(T)) >= int64_t(16) << 20;
}

}  // namespace mercer
